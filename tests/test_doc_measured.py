"""Figures of the page of measurements, and of the front page, are those of the tables they name."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGE = (ROOT / "doc" / "measured.md").read_text(encoding="utf-8")
FRONT = (ROOT / "README.md").read_text(encoding="utf-8")


def rows(name, **wanted):
    """Rows of a table with these entries."""
    with (RESULTS / name).open(encoding="utf-8", newline="") as file:
        found = [
            row
            for row in csv.DictReader(file)
            if all(row[key] == value for key, value in wanted.items())
        ]
    assert found, (name, wanted)
    return found


def line(*beginning, page=PAGE):
    """Cells of the line of a table that begins with these."""
    cells = [
        [cell.strip() for cell in text.strip().strip("|").split("|")]
        for text in page.splitlines()
        if text.startswith("|")
    ]
    (found,) = [each for each in cells if each[: len(beginning)] == list(beginning)]
    return found[len(beginning) :]


def same(said, value):
    """Whether a figure is the value to as many digits as it has."""
    number = re.search(r"\d*\.?\d+", said.replace(" ", ""))[0]
    digits = len(number.partition(".")[2])
    return abs(float(number) - value) <= 0.5001 * 10.0**-digits


@pytest.mark.parametrize("duels", ["50", "200", "500"])
@pytest.mark.parametrize("hyperparameters", ["fixed", "learned"])
def test_fits_beside_botorch(duels, hyperparameters):
    told = {"problem": "gp4", "noise": "0.01", "t": duels, "hyperparameters": hyperparameters}
    (row,) = rows("fit_speed.csv", **told)
    said = line(duels, hyperparameters)
    losses = said.pop().split("/")
    for figure, column in zip(
        said + losses,
        ("ep s", "laplace s", "botorch s", "ep ratio", "ep log-loss", "botorch log-loss"),
        strict=True,
    ):
        assert same(figure, float(row[column])), (figure, column)


SCALE = [
    (("SVI", "10 000", "2 000", "100"), "svi", "true"),
    (("SVI", "100 000", "2 000", "100"), "svi", "true"),
    (("SVI", "100 000", "2 000", "500"), "svi", "true"),
    (("SVI", "1 000 000", "100 000", "100"), "svi", "true"),
    (("SVI", "1 000 000", "100 000", "500"), "svi", "true"),
    (("stream through `partial_fit`", "10 000 000", "2 000", "100"), "stream", "true"),
    (("stream through `partial_fit`", "10 000 000", "100 000", "100"), "stream", "true"),
    (("GPPL (UKPLab)", "10 000", "2 000", "100"), "gppl", "true"),
    (("XGBoost, pairwise ranker", "10 000", "2 000", ""), "xgboost", ""),
    (("XGBoost, pairwise ranker", "100 000", "2 000", ""), "xgboost", ""),
    (("choix (Bradley–Terry, no features)", "100 000", "2 000", ""), "choix", ""),
    (("logistic regression", "100 000", "2 000", ""), "logistic", ""),
]


@pytest.mark.parametrize(("setting", "method", "hyperparameters"), SCALE)
def test_a_million_duels(setting, method, hyperparameters):
    _, duels, items, points = (cell.replace(" ", "") for cell in setting)
    told = {"method": method, "duels": duels, "items": items, "features": "10"}
    told |= {"points": points or "0", "hyperparameters": hyperparameters}
    (row,) = rows("scale.csv", **told)
    for figure, column in zip(line(*setting), ("seconds", "peak MiB", "with noise"), strict=True):
        assert same(figure, float(row[column])), (figure, column)


@pytest.mark.parametrize(
    ("beginning", "task", "votes"),
    [
        ("100 000, names", "names, as names", "100000"),
        ("a million, names", "names, as names", "1000000"),
        ("ten million, names", "names, as names", "10000000"),
        ("100 000, four continuous controls", "4 controls", "100000"),
        ("a million, four continuous controls", "4 controls", "1000000"),
        ("a million of 10 000 judges, reliability learned", "judges", "1000000"),
    ],
)
def test_leaderboards(beginning, task, votes):
    for figure, method in zip(line(beginning), ("skpref", "arena-rank", "evalica"), strict=True):
        if figure:
            (row,) = rows("leaderboard_scale.csv", method=method, task=task, votes=votes)
            assert same(figure, float(row["fit s"])), (figure, method)


@pytest.mark.parametrize("name", ["Branin", "Ackley-4", "Hartmann-3", "Hartmann-6"])
def test_regret_beside_other_optimisers(name):
    methods = {
        "default": "regret.csv",
        "Optuna": "regret_peers.csv",
        "BoTorch-EUBO": "regret_peers.csv",
        "paper-HB-EI": "regret_peers.csv",
    }
    seeds = {str(seed) for seed in range(1000, 1010)}
    for figures, (method, table) in zip(line(name), methods.items(), strict=True):
        runs = rows(table, function=name.lower(), method=method, flip="0.0")
        last = [float(run["regret"].split()[59]) for run in runs if run["seed"] in seeds]
        assert len(last) == 10
        logarithms = np.log10(np.maximum(last, 1e-4))
        values = 10.0 ** np.quantile(logarithms, [0.5, 0.25, 0.75])
        for figure, value in zip(re.findall(r"\d[\d.]*", figures), values, strict=True):
            assert abs(float(figure) - value) <= 0.06 * value, (method, figure, value)


@pytest.mark.parametrize("method", ["HB-EI", "LA-EI", "EP-MUC", "EP-TS-MUC", "DuelTS", "EIIG"])
def test_methods_in_the_setting_of_the_paper(method):
    page = (ROOT / "doc" / "regret_study.md").read_text(encoding="utf-8")
    page = page.partition("## In the setting of the paper")[2].partition("\n### ")[0]
    functions = ("branin", "holder-table", "bukin-6", "ackley-4")
    functions += ("hartmann-3", "hartmann-4", "hartmann-6")
    for figure, name in zip(line(method, page=page)[1:], functions, strict=True):
        runs = [
            r for r in rows("regret_paper.csv", function=name, method=method) if r["seed"] in "01"
        ]
        last = [float(run["regret"].split()[59]) for run in runs]
        assert len(last) == 2
        median = np.median(np.log10(np.maximum(last, 1e-4)))
        assert float(figure.replace("−", "-")) == pytest.approx(median, abs=0.0051), name


def test_many_users():
    for figure, name in zip(
        line("skpref, duels between items left out"),
        ("Synthetic", "Sushi", "MovieLens", "Election", "Jura"),
        strict=True,
    ):
        found = rows("collaborative_summary.csv", set=name, users="100")
        errors = [float(row["error"]) for row in found if row["method"] in ("cp", "cpu")]
        assert same(figure, min(errors)), (name, figure)


def test_rivals_of_three_outcomes():
    for beginning, task in (
        ("international football, the year to come", "football"),
        ("verdicts on language models, split at random", "llm, at random"),
        ("verdicts on language models, split by prompt", "llm, by prompt"),
    ):
        found = {
            row["method"]: float(row["log-loss"]) for row in rows("answers_summary.csv", task=task)
        }
        ours, best = line(beginning)
        assert same(ours, found["ep"])
        others = {key: value for key, value in found.items() if key not in ("ep", "ep in prompts")}
        others.pop("laplace")
        assert same(best, min(others.values()))


def test_the_front_page_has_the_figures_of_the_page_of_measurements():
    ours, others, _ = line("fit 500 duels, kernel and noise learned", page=FRONT)
    measured = line("500", "learned")
    assert ours == f"{float(measured[0]):.1f} s, log-loss {measured[4].split('/')[0].strip()[1:]}"
    assert others == f"BoTorch {float(measured[2]):.0f} s, {measured[4].split('/')[1].strip()[1:]}"
    names = line("board of a million votes, names", page=FRONT)
    assert names[0] == line("a million, names")[0]
    hartmann = line(
        "regret on Hartmann-6 after 60 questions (`HallucinationBelieverOptimizer`)", page=FRONT
    )
    assert float(hartmann[0]) == float(line("Hartmann-6")[0].split()[0])


def test_the_front_page_is_short_and_has_the_command_of_the_tests():
    assert len(FRONT.splitlines()) <= 120
    continuous = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    commands = re.findall(r"^```sh\n(python3\.11 .*)\n```$", FRONT, flags=re.MULTILINE)
    assert len(commands) == 2
    assert commands[1] in continuous.splitlines()
