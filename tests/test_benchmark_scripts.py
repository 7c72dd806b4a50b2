"""Every benchmark script runs at its smallest size, with its data sets and without."""

import multiprocessing
import os
import re
import runpy
import shlex
import sys
import traceback
from pathlib import Path

import pytest
from datasets_support import REAL

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks, and peaks in KiB")
ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS = ROOT / "benchmarks"
RESULTS = BENCHMARKS / "results"
SCRIPTS = {str(path.relative_to(BENCHMARKS)): path for path in BENCHMARKS.glob("*/[a-z]*.py")}
# Options of each script, OUT being a folder for its output.
SMALLEST = {
    "leaderboard/coverage.py": "--tournaments 1 --truth normal",
    "leaderboard/biases.py": "--seeds 1 --settings 'length 3 0.05' 'panel with order'",
    "leaderboard/judges.py": "--seeds 1 --only simulated",
    "leaderboard/leaderboard.py": "--tournaments 1",
    "leaderboard/leaderboard_scale.py": "--votes 1000 --tasks 'names, positions'",
    "leaderboard/length_control.py": "--repository OUT/alpaca_eval",
    "leaderboard/live_board.py": "--part first --repeats 1",
    "leaderboard/own_answers.py": "--panels 2",
    "leaderboard/prompts.py": "",
    "leaderboard/prompts_scale.py": "",
    "leaderboard/read_votes.py": "--votes 1000",
    "leaderboard/sandwich.py": "",
    "learning/active.py": "--splits 1 --sets crabs iris --strategies random",
    "learning/answers.py": "--tasks sushi --splits 1 --people 5 --sets a --methods joint",
    "learning/circles.py": "--quick",
    "learning/convincing.py": "--topics 1 --methods longer",
    "learning/covariates.py": "--quick --methods features",
    "learning/embeddings.py": "--votes 200 --columns 5 --items 50",
    "learning/monotone.py": "",
    "learning/real_data.py": "--quick --only candy 'cars 1, pooled'",
    "learning/sparse_quality.py": "--points 20",
    "learning/wrong_answers.py": "--draws 1 --duels 20",
    "optimize/ask_latency.py": "--dims 2 --duels 6-8 --lead 0",
    "optimize/bits_needed.py": "",
    "optimize/costs.py": "--problems 'function hartmann-3' --seeds 0 --budget 25",
    "optimize/earlier.py": "--tasks common --people 1 --earlier 3 --questions 4 --answers 2",
    "optimize/forgetting.py": "--seeds 2 --duels 5 --rates 0.0 --judges moved",
    "optimize/generated_regret.py": "--problems 'draw 1 rbf 2' --seeds 0 --answers 2"
    " --methods mean",
    "optimize/joining.py": "--functions branin --sizes 2 --seeds 0 --answers 3",
    "optimize/judges_who_err.py": "--judges wrong --methods believer --seeds 0 --answers 2"
    " --problems 'draw 0 rbf 2'",
    "optimize/limits.py": "--problems blend --seeds 0 --answers 10",
    "optimize/measurements.py": "--functions branin --seeds 0 --prices 1 --budget 4",
    "optimize/peer_optuna_page.py": "--parts size --answers 2 --seeds 0",
    "optimize/peer_regret.py": "--peer optuna --functions branin --seeds 0 --duels 2",
    "optimize/question_forms.py": "--functions branin --forms duel --seeds 0 --answers 2",
    "optimize/regret.py": "--functions branin --methods HB-EI --seeds 0 --duels 2",
    "optimize/regret_figures.py": "--output OUT",
    "optimize/stopping.py": "--most 1 --answers 3 --groups line",
    "posterior/bounded_sampling.py": "--cases 10:0",
    "posterior/evidence.py": "--sizes 5 --noise 1 --proposals 100",
    "posterior/joint_answers.py": "--problems 1 --draws 2000 --learned 1",
    "posterior/matrix.py": "--engines laplace --learning fixed --out OUT/matrix.csv",
    "posterior/orthants.py": "--problems 1 --draws 500 --of-kind 0",
    "posterior/peer_samplers.py": "--sizes 5 --seconds 0.01",
    "posterior/planted_faults.py": "--simulations 1 --sound 1 --faults advantage sound",
    "posterior/random_groups.py": "--problems 1",
    "posterior/random_judges.py": "--problems 1 --judges 2 --results OUT/judges.csv",
    "posterior/random_problems.py": "--problems 2 --kinds duels --engines ep --results OUT/p.csv",
    "posterior/samplers.py": "--sizes 5 --flipped-sizes 5 --seconds 0.01 --chains 2",
    "posterior/simulation_calibration.py": "--simulations 2",
    "posterior/skew_gp_study.py": "--quick --part fig1",
    "posterior/truth_small.py": "--problems 1",
    "robustness/damage.py": "--times 10",
    "robustness/interrupts.py": "--interrupts 5 --calls 3",
    "robustness/judging.py": "--judges 3 --answers 30 --kills 2 --items 8",
    "robustness/kill_resume.py": "--kills 1 --steps 2 --strategies random",
    "robustness/processes.py": "--events 10 --judges 2",
    "robustness/same_results.py": "--list",
    "scale/scale.py": "--largest 100 --parts small --method logistic",
    "scale/scale_figures.py": "--output OUT",
    "scale/scale_passes.py": "--largest 1000 --points 10",
    "scale/scale_rivals.py": '\'{"method": "choix", "items": 20, "features": 2, "duels": 50}\'',
    "scale/shards.py": "--duels 500 --items 50 --features 2 --points 10",
    "scale/streams.py": "--seeds 1 --answers 100 --points 10 --pieces 2",
    "speed/exact.py": "--tasks '200 distinct'",
    "speed/finite_rank.py": "--expressions 1 --sizes 50",
    "speed/fit_speed.py": "--sizes 10",
    "speed/hallucination_speed.py": "--repeats 1 --without-1000",
    "speed/peer_botorch.py": "OUT/problem.npz --noise-variance 1",
    "speed/search.py": "--sizes 50 --no-slow --only features --kinds duels",
    "time/doubles.py": "--folder OUT",
    "time/strength_through_time.py": "--data football --calls 1 --methods elo",
    "time/through_time.py": "--parts equality --repeats 1",
    "users/choices_held_out.py": "--sets yogurt --people 5 --choices 2 --splits 1",
    "users/people_choices.py": "--people 4 --choices 3",
    "users/collaborative.py": "--sets Synthetic Sushi --splits 1 --users 10 --methods su",
    "users/collaborative_active.py": "--sets Synthetic Sushi --splits 1 --users 5 --methods su",
    "users/collaborative_curve.py": "--splits 1",
    "users/collaborative_evidence.py": "--size 1 --methods cpu",
    "users/collaborative_figures.py": "--output OUT",
    "users/collaborative_scale.py": "--users 5 --sets a --methods cp",
    "users/collaborative_traffic.py": "--users 80 --passes 2",
}
# Over two seconds.
SLOW = (
    "leaderboard/biases.py",
    "leaderboard/judges.py",
    "leaderboard/leaderboard_scale.py",
    "leaderboard/own_answers.py",
    "leaderboard/prompts.py",
    "leaderboard/prompts_scale.py",
    "leaderboard/sandwich.py",
    "learning/embeddings.py",
    "learning/monotone.py",
    "learning/sparse_quality.py",
    "optimize/bits_needed.py",
    "optimize/generated_regret.py",
    "optimize/judges_who_err.py",
    "optimize/limits.py",
    "optimize/regret_figures.py",
    "posterior/joint_answers.py",
    "posterior/random_judges.py",
    "posterior/samplers.py",
    "robustness/damage.py",
    "robustness/judging.py",
    "scale/shards.py",
    "scale/streams.py",
    "speed/exact.py",
    "speed/finite_rank.py",
    "speed/hallucination_speed.py",
    "time/strength_through_time.py",
    "time/through_time.py",
    "users/collaborative_figures.py",
    "users/people_choices.py",
)
LONGEST = 300  # seconds after which a script is taken to hang
FROM_RESULTS = ("collaborative_figures", "regret_figures", "scale_figures")  # they read tables


def reads_data(path):
    """Whether a script, or a part beside it that it imports, looks for data sets."""
    text = path.read_text(encoding="utf-8")
    names = re.findall(r"^from (_\w+) import", text, re.M)
    parts = [path.with_name(f"{name}.py") for name in names]
    return any("data_folder" in each.read_text(encoding="utf-8") for each in (path, *parts))


def run(path, options, folder, data):
    """Exit code and output of a script, run in a fork that has this process's modules."""
    output = folder / "output.txt"
    context = multiprocessing.get_context("fork")
    child = context.Process(target=_run, args=(path, options, folder, data, output))
    child.start()
    child.join(LONGEST)
    if child.is_alive():
        child.kill()
        child.join()
    return child.exitcode, output.read_text(encoding="utf-8")


def _run(path, options, folder, data, output):
    with output.open("w", encoding="utf-8") as stream:
        for number in (1, 2):
            os.dup2(stream.fileno(), number)
    sys.stdout = sys.__stdout__ = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    own = {each.stem for each in BENCHMARKS.rglob("*.py")}
    for name in own & set(sys.modules):  # of a test that imports one, or of another folder
        del sys.modules[name]
    os.environ |= {"SKPREF_DATA": str(data), "PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg"}
    os.environ["SKPREF_SMALLEST"] = "1"
    if path.stem not in FROM_RESULTS:
        os.environ["SKPREF_RESULTS"] = str(folder)
    os.chdir(folder)
    sys.path.insert(0, str(path.parent))
    sys.argv = [str(path), *shlex.split(options.replace("OUT", str(folder)))]
    try:
        runpy.run_path(str(path), run_name="__main__")
    except Exception:
        traceback.print_exc()
        sys.exit(1)


def files(folder):
    """Sizes and times of the files of a folder."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in found}


def marked(names):
    """These scripts, with the slow ones marked."""
    return [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in sorted(names)]


@pytest.mark.parametrize("name", marked(SCRIPTS))
def test_script_runs_without_data_sets(name, tmp_path):
    before = files(RESULTS)
    absent = tmp_path / "absent"
    code, output = run(SCRIPTS[name], SMALLEST[name], tmp_path, absent)
    assert code == 0, output
    assert files(RESULTS) == before


@pytest.mark.parametrize("name", marked(n for n, path in SCRIPTS.items() if reads_data(path)))
def test_script_runs_with_data_sets(name, tmp_path):
    if not REAL.is_dir():
        pytest.skip("original data not found: set SKPREF_DATA to their folder")
    before = files(RESULTS)
    code, output = run(SCRIPTS[name], SMALLEST[name], tmp_path, REAL)
    assert code == 0, output
    assert "left out" not in output
    assert files(RESULTS) == before


def test_every_script_has_a_smallest_size():
    assert set(SMALLEST) == set(SCRIPTS)
    assert set(SLOW) <= set(SCRIPTS)


def test_script_without_its_package_ends_with_one_line(tmp_path):
    script = tmp_path / "script.py"
    told = f"import sys\nsys.path.insert(0, {str(BENCHMARKS)!r})\nfrom common import needs\n"
    script.write_text(told + "needs('sys', 'no_such_package')\nprint('went on')\n")
    code, output = run(script, "", tmp_path, tmp_path)
    assert code == 0
    (line,) = output.splitlines()
    assert "script.py needs no_such_package:" in line


def test_index_tells_where_each_data_set_is_from():
    index = (BENCHMARKS / "README.md").read_text(encoding="utf-8")
    rows = [line.split("|") for line in index.splitlines() if line.startswith("|")]
    told = {name: row[3] for row in rows for name in re.findall(r"`([\w-]+)`", row[1])}
    for path in BENCHMARKS.rglob("*.py"):
        for name in re.findall(r'data_folder\(\) / "([\w-]+)"', path.read_text(encoding="utf-8")):
            assert re.search(r"https?://|skpref\.datasets", told[name]), (path, name)
