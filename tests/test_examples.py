"""Every example runs headless, without warnings, and prints what it promises."""

import ast
import io
import os
import re
import runpy
import subprocess
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from sklearn import config_context

from skpref.datasets import fetch_atp_matches

ROOT = Path(__file__).resolve().parents[1]

PROMISED = {
    "first_steps_candy.py": ["P(Twix beats", "called right", "chocolate"],
    "football.py": ["at home is worth", "draws predicted", "Best of five", "Brazil"],
    "judge_in_browser.py": ["Best after 12 answers to 3 pictures", "of the noisy picture"],
    "judge_in_notebook.py": ["Best after 20 answers", "liked best"],
    "language_models.py": ["ties 0.", "GPT 4", "95 % credible interval"],
    "leaving_one_machine.py": ["as in one process to 1e-8: True", "log loss"],
    "leaderboard_llm.py": ["GPT 4", "90 % interval", "within the best 20"],
    "many_users.py": ["6242 verdicts of 124 people", "shared tastes", "for somebody new"],
    "optimise_ten_lines.py": ["Best after 25 duels"],
    "pick_from_pool.py": ["after 30 duels", "would be liked better"],
    "picture_1d.py": ["25 duels", "the 95 % interval holds"],
    "pictures.py": ["new duels are called right", "Best after 20 cups"],
    "pictures_of_votes.py": ["seem to answer at random", "busiest 25", "the worst R̂", "20 cups"],
    "rated_items.py": ["duels: 540", "duels within a judge"],
    "raw_contests.py": ["ids in id", "gaps", "later contests", "somebody is new"],
    "resume_run.py": ["same question pending: True", "after undo the same again: True"],
    "reward_head.py": ["of topics not seen", "said", "Surely good", "bald", "tell BALD from"],
    "text_duels.py": ["longer wins", "logistic", "GP", "What is seen"],
    "tune_image_filter.py": ["Best after 35 duels", "of the noisy picture"],
    "tennis.py": ["Log-loss one date ahead", "The best now", "Points of Elo above"],
    "tuning_grid_search.py": ["Best log loss", "Refitted on all duels"],
}
# Pictures that each writes where asked.
SAVED = {
    "football.py": 1,
    "leaderboard_llm.py": 1,
    "picture_1d.py": 1,
    "pictures.py": 5,
    "pictures_of_votes.py": 6,
    "tennis.py": 1,
}
NEEDS = {
    "judge_in_browser.py": "optuna_dashboard",
    "leaving_one_machine.py": "distributed",
    "raw_contests.py": "pandas",
    "judge_in_notebook.py": "anywidget",
}
# Those of data that are fetched run where these are.
FETCHED = {"tennis.py": fetch_atp_matches}
# In an interpreter of their own: the first command of the README, and one with workers of its own.
APART = {"first_steps_candy.py", "leaving_one_machine.py"}
# All are shown but that a picture has no window here.
WARNINGS = ("-W", "default", "-W", "ignore:FigureCanvasAgg is non-interactive")


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def run(name, *arguments):
    """An example as from the root; what it prints, warnings among it."""
    if name in APART:
        return run_apart(name, *arguments)
    out, err = io.StringIO(), io.StringIO()
    path = str(ROOT / "examples" / name)
    with (
        pytest.MonkeyPatch.context() as patch,
        config_context(),
        redirect_stdout(out),
        redirect_stderr(err),
        warnings.catch_warnings(record=True) as seen,
    ):
        warnings.simplefilter("default")
        warnings.filterwarnings("ignore", "FigureCanvasAgg is non-interactive")
        patch.setattr(sys, "argv", [path, *arguments])
        patch.syspath_prepend(ROOT / "examples")  # one imports another's filter
        patch.chdir(ROOT)
        patch.setenv("MPLBACKEND", "Agg")
        try:
            runpy.run_path(path, run_name="__main__")
        finally:
            if "matplotlib.pyplot" in sys.modules:
                sys.modules["matplotlib.pyplot"].close("all")
    return Done(0, out.getvalue(), err.getvalue() + "".join(str(each.message) for each in seen))


def run_apart(name, *arguments):
    environment = os.environ | {
        "MPLBACKEND": "Agg",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONPATH": str(ROOT),
        "PYTHONIOENCODING": "utf-8",
    }
    return subprocess.run(
        [sys.executable, *WARNINGS, str(ROOT / "examples" / name), *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=ROOT,
        env=environment,
        timeout=120,
        check=False,
    )


def who_a_player_is_helps_to_call_later_contests(said):
    # The truth is made up with a strength of each player's own, which no column of features holds.
    lines = said.splitlines()
    for question in ("later contests", "somebody is new"):
        line = next(line for line in lines if question in line)
        with_ids, without, gain, error = map(float, re.findall(r"\d+\.\d+", line))
        assert with_ids < without < np.log(2.0)
        assert gain > error


def what_people_share_improves_predictions(said):
    # Most have given some dozen verdicts on 59 models; they do differ, and not each in a way alone.
    losses = [float(loss) for loss in re.findall(r"^  \D+ (\d\.\d+)$", said, flags=re.M)]
    pooled, alone, shared = losses
    assert shared < alone - 0.02 < pooled - 0.02 < np.log(3.0) - 0.02


def strengths_that_drift_predict_better(said):
    # An outside truth: the share of draws, 22.9 % of the year's matches, is predicted.
    losses = re.findall(r"^  (?:constant|drifting) +(\d\.\d+) +(\d\.\d+)$", said, flags=re.M)
    constant, drifting = (list(map(float, each)) for each in losses)
    assert drifting[0] < constant[0] < np.log(3.0)
    assert drifting[1] < constant[1] - 0.005  # 0.009 of 996 matches
    predicted, seen = map(float, re.findall(r"draws predicted (.*)%, seen (.*)%", said)[0])
    assert abs(predicted - seen) < 2.0


def models_rank_as_the_plain_counts_do(said):
    # An outside truth: the best of the crowd also wins most of its decided duels.
    from skpref.datasets import load_llm_duels

    duels = load_llm_duels(ties=True)
    names = duels.model_names
    best = next(line for line in said.splitlines() if line.startswith("  "))
    number = next(i for i, name in enumerate(names) if best.strip().startswith(name + " "))
    seen = (number == duels.X).any(axis=1)
    decided = seen & (duels.y != 0)
    won = (duels.X[:, 0] == number) == (duels.y == 1)
    assert won[decided].mean() > 0.6
    assert str(seen.sum()) in best.split()


# What the printed figures say, beyond that there are any.
SAYS = {
    "football.py": strengths_that_drift_predict_better,
    "raw_contests.py": who_a_player_is_helps_to_call_later_contests,
    "many_users.py": what_people_share_improves_predictions,
    "language_models.py": models_rank_as_the_plain_counts_do,
}


@pytest.mark.parametrize(
    "path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name
)
def test_docstring_begins_with_a_title(path):
    """The gallery of the documentation site takes it for the page's."""
    title, line = ast.get_docstring(ast.parse(path.read_text("utf-8"))).splitlines()[:2]
    assert line == "=" * len(title), path.name


def test_all_examples_are_listed():
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == set(PROMISED)


# Those of the plain command.
QUICK = {"optimise_ten_lines.py", "resume_run.py"}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in QUICK else pytest.mark.slow)
        for name in sorted(PROMISED.keys() - SAVED.keys())
    ],
)
def test_example_runs(name):
    if name != "first_steps_candy.py":  # which runs without
        pytest.importorskip("matplotlib")
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    check(name, run(name))


def check(name, done):
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    for words in PROMISED[name]:
        assert words in done.stdout
    if name in SAYS:
        SAYS[name](done.stdout)


def is_png(path):
    return path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SAVED))
def test_example_saves_pictures_where_asked(name, tmp_path):
    pytest.importorskip("matplotlib")
    if name in FETCHED:
        try:
            FETCHED[name](download_if_missing=False)
        except OSError:
            pytest.skip("its data are not here")
    several = SAVED[name] > 1
    check(name, run(name, "--save", str(tmp_path if several else tmp_path / "picture.png")))
    assert len(list(tmp_path.glob("*.png"))) == SAVED[name]
    assert all(map(is_png, tmp_path.glob("*.png")))
