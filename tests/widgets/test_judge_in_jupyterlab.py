"""The page in JupyterLab in a real browser: clicks and keys are answers, and none is lost."""

import re
import time

import numpy as np
import pytest
from jupyter_support import notebook

from skpref import HallucinationBelieverOptimizer

SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
SET_UP = f"""
import numpy as np
from IPython.display import HTML
from skpref import HallucinationBelieverOptimizer
from skpref.widgets import Judge

def words(item):
    return f"{{item['x']!r}} {{item['y']!r}}"

def picture(item):
    return np.full((30, 40, 3), item["x"])

def optimizer(journal=None):
    return HallucinationBelieverOptimizer({SPACE}, journal=journal, random_state=0)
"""
N_DUELS = 30


def optimizer():
    return HallucinationBelieverOptimizer(SPACE, random_state=0)


def winner(items):
    return int(np.argmin([abs(item["x"] - 0.3) + abs(item["y"] - 0.6) for item in items]))


class Page:
    """A judge on a page, as somebody sees and uses it."""

    def __init__(self, lab, number=0):
        self.root = lab.page.locator(".skpref-judge").nth(number)
        self.root.wait_for(timeout=60_000)

    def items(self):
        """The items that the function `words` has put into words."""
        texts = self.root.locator(".text").all_inner_texts()
        return [dict(zip(SPACE, map(float, text.split()), strict=True)) for text in texts]

    def wait_for(self, n_told, items=None):
        """Until so many answers are told and, if given, these items are shown."""
        words = re.compile(rf"^{n_told}( of \d+)? answers?$")
        self.root.locator(".told").filter(has_text=words).wait_for(timeout=60_000)
        end = time.monotonic() + 60
        while items is not None and self.items() != list(items):
            assert time.monotonic() < end, (self.items(), items)
            self.root.page.wait_for_timeout(20)

    def press(self, *keys):
        """Press keys one after another, the page being in focus since a click or by this."""
        if not self.root.evaluate("root => root.contains(document.activeElement)"):
            self.root.focus()
        for key in keys:
            self.root.page.keyboard.press(key)

    def click(self, name):
        self.root.get_by_role("button", name=name).first.click()


@pytest.mark.browser
def test_clicks_and_keys_are_ask_and_tell(tmp_path):
    journal, other = tmp_path / "run.db", optimizer()
    judge = f"Judge(run, words, n_duels={N_DUELS} - run.n_told_)"
    cells = [SET_UP, f"run = optimizer({str(journal)!r})\njudge = {judge}\njudge"]
    with notebook(tmp_path, cells) as lab:
        lab.run_all()
        page = Page(lab)
        ways = [("Item 1: Better", "Item 2: Better"), ("1", "2"), ("ArrowLeft", "ArrowRight")]
        for step in range(12):
            asked = other.ask()
            page.wait_for(step, asked)  # to the last bit
            way = ways[step % 3][winner(asked)]
            if way.startswith("Item"):
                page.click(way)
            else:
                lab.page.keyboard.press(way)  # in focus since the click before
            other.tell(asked, winner(asked) == 0)
        before = other.ask()
        page.wait_for(12, before)
        # In JupyterLab x cuts the cell, and 0 pressed twice restarts the kernel.
        page.press("x")
        # Ties, skips, and all of them taken back.
        for key, n_told in (("0", 13), ("0", 14), ("t", 15)):
            page.press(key)
            other.tell(other.ask(), "tie")
            page.wait_for(n_told, other.ask())
        page.press("s")
        other.skip(other.ask())
        page.wait_for(15, other.ask())
        page.press("u")
        other.undo()
        page.wait_for(15, other.ask())
        for n_told in (14, 13, 12):
            page.click("Undo")
            other.undo()
            page.wait_for(n_told, other.ask())
        assert other.ask() == before
        assert lab.page.locator(".jp-Dialog").count() == 0
        assert lab.page.locator(".jp-CodeCell").count() == 2

        # The machine is switched off; the next day the cells are run again.
        lab.end_kernels()
        lab.open()
        lab.run_all()
        page = Page(lab)
        for step in range(12, N_DUELS):
            asked = other.ask()
            page.wait_for(step, asked)
            page.press(str(1 + winner(asked)))
            other.tell(asked, winner(asked) == 0)
        page.wait_for(N_DUELS, [other.recommend()])
        assert "All 30 answers are in" in page.root.inner_text()
        assert page.root.locator(".course circle.other").count() == N_DUELS
    kept = HallucinationBelieverOptimizer(SPACE, journal=journal)
    assert kept.history_ == other.history_
    assert kept.recommend() == other.recommend()


@pytest.mark.browser
def test_lines_planes_sets_and_html(tmp_path):
    hostile = "<img src=x onerror='top.ran = 1'><script>top.ran = 1</script><b>no harm</b>"
    options = {
        "line": "words, kind='line'",
        "plane": "picture, kind='plane'",
        "ranks": "picture, size=4, answer='ranking'",
        "html": f"lambda item: HTML({hostile!r})",
    }
    paths = {name: str(tmp_path / f"{name}.db") for name in options}
    cells = [f"Judge(optimizer({paths[name]!r}), {said})" for name, said in options.items()]
    with notebook(tmp_path, [SET_UP, *cells], height=2400) as lab:
        lab.run_all()
        line, plane, ranks, html = (Page(lab, number) for number in range(4))

        points, other = optimizer().ask(kind="line"), optimizer()
        other.ask(kind="line")
        line.wait_for(0, [points[4]])
        line.press("ArrowRight")
        line.wait_for(0, [other.item_at(points, 4.25)])
        slider = line.root.get_by_role("slider")
        slider.focus()
        for _ in range(3):
            lab.page.keyboard.press("ArrowRight")
        line.wait_for(0, [points[5]])
        lab.page.keyboard.press("ArrowLeft")
        line.wait_for(0, [other.item_at(points, 4.75)])
        lab.page.keyboard.press("Enter")
        other.tell(points, position=4.75)
        line.wait_for(1, [other.ask(kind="line")[4]])

        pictures = plane.root.locator("img")
        assert pictures.count() == 25
        assert pictures.nth(7).evaluate("image => [image.naturalWidth, image.naturalHeight]") == [
            *(40, 30)
        ]
        plane.press("ArrowRight", "ArrowRight", "ArrowDown", "Enter")  # to the first, and on
        plane.wait_for(1)
        ranks.click("Item 3")
        ranks.press("1", "1", "1", "4")  # 1, and not, and yet
        ranks.wait_for(1)

        frame = html.root.locator("iframe").first
        frame.wait_for()
        assert frame.content_frame.locator("b").inner_text() == "no harm"
        html.click("Item 2: Better")
        html.wait_for(1)
        assert lab.page.evaluate("window.ran") is None

    found = [HallucinationBelieverOptimizer(SPACE, journal=path) for path in paths.values()]
    outcomes = [each.history_[0].outcome for each in found]
    assert outcomes == [{"chosen": 5}, {"chosen": 6}, {"ranking": [2, 0, 3, 1]}, 0]
    assert found[0].history_ == other.history_
