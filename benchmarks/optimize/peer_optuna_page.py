"""Our Optuna sampler beside `PreferentialGPSampler` on preferential studies, in one run.

    PYTHONPATH=. PEER_PYTHON benchmarks/optimize/peer_optuna_page.py [--parts wait regret size]
        [--answers 60] [--seeds 0 1 2 3]

Run by a Python that has optuna, optuna-dashboard, botorch and torch, and this package's
dependencies (PYTHONPATH: the repository). Both samplers keep their defaults, two trials are shown,
and a judge who never errs clicks the worse; storage is in memory, everything on one thread.

- wait: after each answer both samplers are asked on the same study, timed, and by turns the trial
  of one of them is shown, that of the other is told as failed. "30" and "60" are medians over the
  last five answers by then; "first" is an ask by a sampler that is new, as after a restart, at the
  end of the study. Spaces: Hartmann-3, Hartmann-6, and the mixed one of
  ``examples/tune_image_filter.py`` (a category and an integer beside three numbers; the judge looks
  at three of the five).
- regret: each sampler has studies of its own from the same first trial. The regret after 10, 20 and
  30 answers is that of the trial that stays on the page, for both; medians over the seeds.
- size: bytes on disk of each sampler's packages and all that they need, as they are installed here
  (torch as it is: its build for CPUs is the smallest), and the seconds of a new process that
  imports the sampler and ends, median of five. For ours torch and botorch are hidden, as Optuna
  Dashboard imports them where they are.

Tables go to ``results/optuna_page_wait.csv``, ``..._regret.csv`` and ``..._size.csv``.
"""

import argparse
import os
import re
import subprocess
import sys
import time
import warnings
from importlib import metadata
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # before numpy
    os.environ[variable] = "1"

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, ROOT, needs, report, versions

needs("torch", "botorch", "optuna_dashboard")
import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState
from optuna_dashboard.preferential import create_study

from skpref.datasets import load_test_function
from skpref.integrations.optuna import PreferentialSampler

PACKAGES = ("optuna", "optuna-dashboard", "botorch", "gpytorch", "torch")
OURS = ("numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl", "optuna", "optuna-dashboard")
THEIRS = ("optuna", "optuna-dashboard", "botorch", "torch")
HIDDEN = """
import sys

class Hidden:
    def find_spec(name, *_):
        if name.partition(".")[0] in ("torch", "botorch", "gpytorch"):
            raise ImportError(name)

sys.meta_path.insert(0, Hidden)
"""
IMPORTS = {
    "skpref": HIDDEN
    + """
from optuna_dashboard.preferential import create_study
from skpref.integrations.optuna import PreferentialSampler
assert "torch" not in sys.modules
""",
    "Optuna": """
from optuna_dashboard.preferential import create_study
from optuna_dashboard.preferential.samplers.gp import PreferentialGPSampler
""",
}
STEPS = (30, 60)
LAST = 5


def samplers(seed):
    import torch
    from optuna_dashboard.preferential.samplers.gp import PreferentialGPSampler

    torch.set_num_threads(1)
    return {"skpref": PreferentialSampler(seed=seed), "Optuna": PreferentialGPSampler(seed=seed)}


def problem(name):
    """Distributions, and the utility of parameters."""
    if name == "mixed":
        space = {
            "kind": CategoricalDistribution(["gaussian", "median"]),
            "width": FloatDistribution(0.3, 3.0),
            "window": IntDistribution(1, 6),
            "sharpen": FloatDistribution(0.0, 2.0),
            "gamma": FloatDistribution(0.5, 2.0),
        }
        return (
            space,
            lambda params: (
                -abs(np.log(params["gamma"]))
                - abs(params["sharpen"] - 0.5)
                - 0.4 * (params["kind"] == "gaussian")
            ),
        )
    function = load_test_function(name)
    space = {f"x{k}": FloatDistribution(*ends) for k, ends in enumerate(function.bounds.tolist())}
    return space, lambda params: float(function(np.array([[*params.values()]]))[0])


def first_trial(space, seed):
    sampler = optuna.samplers.RandomSampler(seed=seed)
    params = {
        name: sampler.sample_independent(None, None, name, each) for name, each in space.items()
    }
    return optuna.trial.create_trial(params=params, distributions=space, value=0.0)


def ask(study, sampler, space):
    """Number of a trial of a sampler, and the seconds until it was there."""
    study._study.sampler = sampler
    begin = time.perf_counter()
    trial = study.ask(space)
    return trial.number, time.perf_counter() - begin


def answer(study, utility, shown):
    """The trial that stays."""
    trials = study.trials
    best, worst = sorted(shown, key=lambda number: -utility(trials[number].params))
    study.report_preference(trials[best], trials[worst])
    return best


def wait(name, n_answers):
    space, utility = problem(name)
    both = samplers(0)
    study = create_study(n_generate=2, sampler=both["skpref"])
    study.add_trial(first_trial(space, 0))
    stays, seconds = 0, {each: [] for each in both}
    for k in range(n_answers):
        asked = {}
        # The one that is asked first sees nothing of the other's.
        for each in sorted(both, reverse=bool(k % 2)):
            asked[each], taken = ask(study, both[each], space)
            seconds[each].append(taken)
            kept = list(both)[k % 2]
            if each != kept:
                study._study.tell(asked[each], state=TrialState.FAIL)
        stays = answer(study, utility, [stays, asked[kept]])
    rows = []
    for each, new in samplers(1).items():
        number, first = ask(study, new, space)
        study._study.tell(number, state=TrialState.FAIL)
        row = {"space": name, "sampler": each}
        row |= {
            f"seconds_{n}": float(np.median(seconds[each][n - LAST : n]))
            for n in STEPS
            if n <= n_answers
        }
        rows.append(row | {"seconds_first": first})
    return rows


def regret(name, seeds, n_answers=30):
    space, utility = problem(name)
    optimum = load_test_function(name).optimum
    found = {"skpref": [], "Optuna": []}
    for seed in seeds:
        for each, sampler in samplers(seed).items():
            study = create_study(n_generate=2, sampler=sampler)
            study.add_trial(first_trial(space, seed))
            stays, regrets = 0, []
            for k in range(1, n_answers + 1):
                number, _ = ask(study, sampler, space)
                stays = answer(study, utility, [stays, number])
                if k % 10 == 0:
                    regrets.append(optimum - utility(study.trials[stays].params))
            found[each].append(regrets)
    return [
        {"function": name, "sampler": each, "seeds": len(runs)}
        | {f"median_{10 * k}": float(v) for k, v in enumerate(np.median(runs, axis=0), start=1)}
        for each, runs in found.items()
    ]


def needed(names):
    """Distributions that these need, themselves included."""
    found, left = set(), list(names)
    while left:
        name = re.sub(r"[-_.]+", "-", left.pop()).lower()
        if name in found:
            continue
        try:
            wanted = metadata.requires(name) or []
        except metadata.PackageNotFoundError:  # of another system
            continue
        found.add(name)
        left += [re.match(r"[\w.-]+", each)[0] for each in wanted if "extra ==" not in each]
    return found


def megabytes(names):
    files = (path for name in names for path in metadata.files(name) or [])
    total = sum(path.locate().stat().st_size for path in files if path.locate().is_file())
    return total / 1e6


def size():
    own = sum(each.stat().st_size for each in Path(ROOT, "skpref").rglob("*") if each.is_file())
    rows = []
    for each, names, more in (("skpref", OURS, own / 1e6), ("Optuna", THEIRS, 0.0)):
        seconds = []
        for _ in range(5):
            begin = time.perf_counter()
            subprocess.run([sys.executable, "-W", "ignore", "-c", IMPORTS[each]], check=True)
            seconds.append(time.perf_counter() - begin)
        packages = needed(names)
        rows.append(
            {
                "sampler": each,
                "packages": len(packages) + (each == "skpref"),
                "megabytes": megabytes(packages) + more,
                "import_seconds": float(np.median(seconds)),
            }
        )
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", default=["wait", "regret", "size"])
    parser.add_argument("--answers", type=int, default=60)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3])
    chosen = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    parts = {
        "size": size,
        "wait": lambda: [
            row
            for name in ("hartmann-3", "hartmann-6", "mixed")
            for row in wait(name, chosen.answers)
        ],
        "regret": lambda: [
            row for name in ("branin", "hartmann-3") for row in regret(name, chosen.seeds)
        ],
    }
    for part in [each for each in parts if each in chosen.parts]:
        report(
            parts[part](),
            RESULTS / f"optuna_page_{part}.csv",
            arguments=vars(chosen),
            versions=versions(*PACKAGES),
        )


if __name__ == "__main__":
    main()
