"""The example on the page of Optuna Dashboard, judged in a headless browser."""

import sys
from pathlib import Path

import numpy as np
import pytest
from browser_support import free_port, open_page, served, wait_until

from skpref.optimize import PreferenceOptimizer

pytest.importorskip("optuna_dashboard")

from optuna_dashboard.preferential import load_study

from skpref.integrations.optuna import PreferentialSampler

ROOT = Path(__file__).resolve().parents[2]
SPACE = {
    "kind": ["gaussian", "median"],
    "width": (0.3, 3.0),
    "window": (1, 6),
    "sharpen": (0.0, 2.0),
    "gamma": (0.5, 2.0),
}
N_ANSWERS = 30
# Three trials with their pictures, of which none is one that must be gone.
READY = """gone => {
    const titles = [...document.querySelectorAll('h5')].map(each => each.innerText);
    const pictures = [...document.querySelectorAll('img')];
    return titles.length === 3 && !titles.includes(gone)
        && pictures.length === 3 && pictures.every(each => each.complete && each.naturalWidth);
}"""
# Every text with such a word that the page shows, however briefly.
REPORT_FAILURES = """new MutationObserver(changes => {
    for (const node of changes.flatMap(each => [...each.addedNodes])) {
        const text = node.innerText || node.textContent || '';
        if (/fail|error|undefined/i.test(text) && text.length < 1000) reportFailure(text);
    }
}).observe(document, {childList: true, subtree: true})"""


def badness(params):
    kind = 0.4 * (params["kind"] == "gaussian")
    return abs(np.log(params["gamma"])) + abs(params["sharpen"] - 0.5) + kind


class Judge:
    """Clicks on the page, and keeps what was clicked."""

    def __init__(self, page, folder):
        self.page, self.url = page, f"sqlite:///{folder / 'study.db'}"
        self.answers, self.gone, self.failures = [], "", []
        page.expose_function("reportFailure", lambda text: self.failures.append(text))
        page.add_init_script(REPORT_FAILURES)

    @property
    def study(self):
        sampler = PreferentialSampler()
        return load_study(study_name="image filter", storage=self.url, sampler=sampler)

    def wait(self):
        wait_until(self.page, READY, self.gone, seconds=60.0)

    def shown(self):
        return [int(each.split()[1]) for each in self.page.locator("h5").all_inner_texts()]

    def click(self, button, place):
        self.gone = f"Trial {self.shown()[place]}"
        self.page.get_by_role("button", name=button).nth(place).click()

    def n_written(self):
        """Answers that the dashboard has written; the history is the last of what it writes."""
        study = self.study._study
        return str(study._storage.get_study_system_attrs(study._study_id)).count('"ChooseWorst"')

    def answer(self, wait=True):
        """Click the worst, and see another picture in its place, or only that it was written."""
        shown, trials = self.shown(), self.study.trials
        items = [trials[number].params for number in shown]
        worst = int(np.argmax([badness(each) for each in items]))
        self.answers.append((items, worst))
        before = self.n_written()
        self.click("Worst", worst)
        while not wait and self.n_written() == before:
            self.page.wait_for_timeout(10)
        if wait:
            self.wait()

    def skip(self):
        """Turn a picture down, and see another in its place."""
        self.click("skip trial", 1)
        self.wait()

    def undo(self):
        """Take the last answer back, and see the picture again beside the others."""
        self.answers.pop()
        self.page.get_by_role("button", name="Undo").click()
        wait_until(self.page, "() => document.querySelectorAll('h5').length === 4")


@pytest.mark.slow
def test_ctrl_c_says_what_is_best(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    example = pytest.importorskip("judge_in_browser")
    study, store = example.open_study(tmp_path, seed=0)
    noisy = example.picture()

    def stopped(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(example.time, "sleep", stopped)
    example.judged(study, store, noisy)  # draws three pictures, and waits for an answer
    assert capsys.readouterr().out == "No answers yet.\n"
    shown = sorted(study.trials, key=lambda trial: trial.number)
    study.report_preference(shown[::2], shown[1])
    example.judged(study, store, noisy)
    best = PreferentialSampler().recommend(study)
    assert best.number != shown[1].number
    assert capsys.readouterr().out == f"The best so far is trial {best.number}: {best.params}\n"


@pytest.mark.slow
def test_a_picture_that_is_turned_down_while_it_is_drawn(tmp_path, monkeypatch):
    """The next one is drawn; the program ended by an error of Optuna's."""
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    example = pytest.importorskip("judge_in_browser")
    study, store = example.open_study(tmp_path, seed=0)
    develop, n_drawn = example.develop, []

    def turned_down(noisy, params):
        if not n_drawn:
            study._study.tell(0, state=example.TrialState.FAIL)  # as "skip" on the page does
        n_drawn.append(params)
        return develop(noisy, params)

    monkeypatch.setattr(example, "develop", turned_down)
    while study.should_generate():
        example.draw_next(study, store, example.picture())
    shown = [trial.number for trial in study.trials if example.PICTURE in trial.user_attrs]
    assert sorted(shown) == [1, 2, 3]


@pytest.mark.browser
def test_thirty_answers_on_the_page(tmp_path, monkeypatch):
    port = free_port()
    command = [sys.executable, str(ROOT / "examples" / "judge_in_browser.py"), "--page"]
    command += ["--folder", str(tmp_path), "--port", str(port)]
    url, log = f"http://127.0.0.1:{port}/dashboard/", tmp_path / "log.txt"
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with open_page(height=1600) as page:  # so that no message lies over a button
        judge = Judge(page, tmp_path)
        with served(command, url, log):
            page.goto(f"{url}studies/1")
            judge.wait()
            for _ in range(10):
                judge.answer()
            judge.skip()
            judge.answer()
            judge.undo()
            while len(judge.answers) < N_ANSWERS // 2:
                judge.answer()
            assert judge.failures == []
            judge.answer(wait=False)  # and the worker is killed while it chooses
        before = judge.study.preferences
        with served(command, url, log):
            page.goto(f"{url}studies/1")
            judge.wait()
            kept = judge.study.preferences
            assert [[each.number for each in pair] for pair in kept] == [
                [each.number for each in pair] for pair in before
            ]
            while len(judge.answers) < N_ANSWERS:
                judge.answer()
    study = judge.study
    assert len(study.preferences) == sum(len(items) - 1 for items, _ in judge.answers)

    # What was clicked, told to an optimizer of the same settings, gives the same posterior.
    told = PreferenceOptimizer(SPACE, random_state=0)
    for items, worst in judge.answers:
        told.tell(items, worst=worst)
    sampler = PreferentialSampler(seed=1)
    wanted, found = told.recommend(), sampler.recommend(study).params
    assert {name: value for name, value in found.items() if name in ("kind", "window")} == {
        name: wanted[name] for name in ("kind", "window")
    }
    for name in ("width", "sharpen", "gamma"):
        assert abs(found[name] - wanted[name]) < 1e-6
    shown = [each.params for each in study.trials if len(each.params) == len(SPACE)]
    np.testing.assert_allclose(
        sampler.optimizer(study).posterior_.mean(told.to_unit(shown)),
        told.posterior_.mean(told.to_unit(shown)),
        rtol=0.0,
        atol=1e-6,
    )
    assert badness(found) < np.quantile([badness(each) for each in shown], 0.2)
