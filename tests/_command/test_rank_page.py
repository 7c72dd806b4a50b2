"""The page that `skpref rank` writes, in a real browser."""

import csv

import numpy as np
import pytest
from browser_support import check_accessibility, open_page

from skpref._command import main

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
def test_a_click_on_a_head_sorts_and_nothing_is_too_wide(tmp_path, width, scheme):
    rng = np.random.default_rng(0)
    first = rng.integers(25, size=400)
    second = (first + rng.integers(1, 25, size=400)) % 25
    with open(tmp_path / "votes.csv", "w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["a", "b", "winner", "judge"])
        for i, j in zip(first.tolist(), second.tolist(), strict=True):
            writer.writerow([f"model {i}", f"model {j}", "a" if i < j else "b", f"j{i % 12}"])
    options = ["--judge", "judge", "--out", str(tmp_path)]
    assert main(["rank", str(tmp_path / "votes.csv"), *options]) == 0
    with open_page(width, color_scheme=scheme) as browser:
        browser.goto((tmp_path / "board.html").as_uri())
        board = browser.locator("table").first
        names = board.locator("tbody td:nth-child(2)")
        before = names.all_inner_texts()
        for turn in (1, -1):
            board.get_by_role("button", name="name").click()
            assert names.all_inner_texts() == sorted(before)[::turn]
        board.get_by_role("button", name="rank", exact=True).click()
        assert names.all_inner_texts() == before
        assert browser.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        check_accessibility(browser)
