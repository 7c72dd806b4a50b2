"""The pages of `skpref judge` in a real browser: every kind of item, and each way to answer."""

import csv
import re

import numpy as np
import pytest
from browser_support import check_accessibility, free_port, open_page, wait_until
from judging_support import KINDS, exported, judging, links_of, write_files, write_pictures

from skpref.duels import from_votes
from skpref.widgets._files import encode_wav

pytestmark = pytest.mark.browser

# What an item of each kind must be on the page to be seen or heard: a picture that is unpacked, a
# sound whose length is known, a text.
_IS_SHOWN = {
    "img": "each => each.complete && each.naturalWidth > 0",
    "audio": "each => each.duration === 2",
    "video": "each => each.controls",
    ".text": "each => each.innerText.includes('<script>')",
    "iframe[srcdoc]": "each => each.contentDocument.body.innerText.includes('bold')",
    ".pdf iframe": "each => each.src.includes('items/')",
}
_IS_TOO_WIDE = "document.documentElement.scrollWidth > window.innerWidth"


class Page:
    """The page to judge on, as somebody sees and uses it."""

    def __init__(self, page, address):
        self.page, self.messages = page, []
        page.on("console", lambda message: self.messages.append(message.text))
        page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.open(address)

    def open(self, address):
        self.page.goto(address)
        self.root = self.page.locator(".skpref-judge")
        self.root.locator(".told").filter(has_text="answer").wait_for()

    def question(self):
        """What tells a question from another."""
        return self.root.locator(".items").evaluate(
            "all => [...all.querySelectorAll('[src], [srcdoc], .text')]"
            ".map(each => each.getAttribute('src') ?? each.srcdoc ?? each.innerText)"
        )

    def wait_for(self, n_answers):
        words = re.compile(rf"^{n_answers}( of \d+)? answer")
        self.root.locator(".told").filter(has_text=words).wait_for()
        wait_until(
            self.page, "!document.querySelector('.skpref-judge').classList.contains('waiting')"
        )

    def click(self, name):
        self.root.get_by_role("button", name=name).first.click()


def test_every_kind_is_shown_and_every_answer_counts_as_it_was_given(tmp_path):
    folder, log = write_files(tmp_path / "items", KINDS), tmp_path / "log"
    port = free_port()
    start = lambda: judging(folder, "--votes", "7", log=log, port=port)  # noqa: E731
    with open_page() as browser:
        with start() as (_, address):
            page = Page(browser, f"{address}/?judge=ann")
            shown, kinds = [], set()
            ways = [
                lambda: page.click("Item 1: Better"),
                lambda: browser.keyboard.press("2"),
                lambda: browser.keyboard.press("ArrowLeft"),
                lambda: page.click("No difference"),
            ]
            for n_answers, answer in enumerate(ways):
                shown.append(page.question())
                for kind, is_shown in _IS_SHOWN.items():
                    for each in page.root.locator(f".content {kind}").all():
                        wait_until(browser, is_shown, each.element_handle())
                        kinds.add(kind)
                check_accessibility(browser)
                answer()
                page.wait_for(n_answers + 1)
            assert kinds == set(_IS_SHOWN)
            assert browser.evaluate("window.ran") is None
            assert not [text for text in page.messages if "Framing" in text]

            # Two quick undos take two back, and a skip is no answer.
            page.root.focus()
            for key in "uu":
                browser.keyboard.press(key)
            page.wait_for(2)
            assert page.question() == shown[2]
            browser.keyboard.press("0")
            page.wait_for(3)
            assert page.question() == shown[3]
            browser.keyboard.press("s")
            wait_until(
                browser,
                "before => !document.querySelector(`.items [src='${before}']`)",
                next((each for each in shown[3] if each.startswith("items/")), "none"),
            )
            page.wait_for(3)
            comment = page.root.get_by_role("textbox")
            comment.fill("Seen from u to s")  # keys that mean something outside
            page.click("Item 2: Better")
            page.wait_for(4)
            question = page.question()
        # The server is gone, an answer is given meanwhile, and it is back.
        page.click("Item 1: Better")
        page.root.get_by_text("sent again until it does").wait_for()
        with start() as (_, address):
            page.wait_for(5)
            answers = exported(address)
            expected = [1, 0, "tie", 0, 1]
            assert [each["outcome"] for each in answers] == expected
            assert [each["comment"] for each in answers] == ["", "", "", "Seen from u to s", ""]
            assert all(0.0 <= each["seconds"] < 3600.0 for each in answers)
            assert page.question() != question
            question = page.question()
            page.open(f"{address}/?judge=ann")
            assert page.question() == question
            for n_answers in (6, 7):
                page.root.focus()
                browser.keyboard.press("1")
                page.wait_for(n_answers)
            page.root.get_by_text("All 7 votes are in.").wait_for()
            check_accessibility(browser)
            page.click("Go on")
            page.root.get_by_role("button", name="Item 1: Better").wait_for()

            page.page.get_by_role("link", name="Leaderboard").click()
            places = browser.locator("table", has_text="P(best)")
            places.wait_for(timeout=60_000)  # it comes by itself
            names = places.locator("tbody tr td:nth-child(2)")
            assert sorted(names.all_inner_texts()) == sorted(KINDS)
            places.get_by_role("button", name="name").click()
            assert names.all_inner_texts() == sorted(KINDS)
            places.get_by_role("button", name="name").click()
            assert names.all_inner_texts() == sorted(KINDS, reverse=True)
            browser.get_by_role("link", name="Export").click()
            with browser.expect_download() as download:
                browser.get_by_role("link", name="votes.csv").click()
            with open(download.value.path(), newline="") as file:
                rows = list(csv.DictReader(file))
            assert [row["winner"] for row in rows][:5] == ["a", "b", "tie", "b", "a"]
            table = {name: [row[name] for row in rows] for name in rows[0]}
            assert len(from_votes(table).y) == 7


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_by_touch_and_link(tmp_path, scheme):
    folder, log = write_pictures(tmp_path / "photos", 6), tmp_path / "log"
    for path in folder.iterdir():
        path.rename(path.with_name(f"a picture of a long name {path.name}"))
    invited = tmp_path / "invited.csv"
    invited.write_text("judge\nann\nbob\n")
    options = ["--judges", str(invited), "--size", "4", "--answer", "best_worst"]
    with (
        judging(folder, *options, log=log),
        open_page(400, 800, has_touch=True, color_scheme=scheme) as browser,
    ):
        page = Page(browser, links_of(log)["ann"])
        assert page.root.locator("img").count() == 4
        assert not browser.get_by_role("link", name="Leaderboard").is_visible()
        check_accessibility(browser)
        page.root.locator(".content img").nth(2).tap()
        page.root.get_by_role("button", name="Item 3: ✓ Best").wait_for()
        page.root.get_by_role("button", name="Item 1: Worst").tap()
        page.wait_for(1)
        assert not browser.evaluate(_IS_TOO_WIDE)
        owner = log.read_text().split("vote at ")[1].split()[0]
        (answer,) = exported(owner.rstrip("/"))
        assert answer["outcome"] == {"chosen": 2, "worst": 0} and answer["judge"] == "ann"
        for path in ("board", "export"):
            browser.goto(f"{owner}{path}")
            if path == "board":
                browser.get_by_text("P(best)").wait_for(timeout=60_000)
            assert not browser.evaluate(_IS_TOO_WIDE)
            check_accessibility(browser)
        ground, ink = browser.evaluate(
            "['backgroundColor', 'color'].map(name => "
            "Number(getComputedStyle(document.body)[name].match(/\\d+/)[0]))"
        )
        assert (ground > ink) == (scheme == "light") and abs(ground - ink) > 150


def test_a_sound_goes_on_where_the_other_was(tmp_path):
    tones = {f"{k}.wav": encode_wav(8000, np.sin(np.arange(40_000.0) / (k + 2))) for k in range(2)}
    folder = write_files(tmp_path / "sounds", tones)
    with judging(folder, log=tmp_path / "log") as (_, address), open_page() as browser:
        page = Page(browser, address)
        first, second = (page.root.locator("audio").nth(k) for k in range(2))
        page.click("Undo")  # a browser plays nothing before a click
        first.evaluate("async each => { each.currentTime = 2; await each.play(); }")
        second.evaluate("async each => { await each.play(); }")
        wait_until(
            browser,
            "document.querySelectorAll('audio')[0].paused "
            "&& document.querySelectorAll('audio')[1].currentTime >= 2",
        )


def test_pictures_are_enlarged_in_step(tmp_path):
    folder = write_pictures(tmp_path / "photos", 2)
    with judging(folder, log=tmp_path / "log") as (_, address), open_page() as browser:
        page = Page(browser, address)
        for picture in page.root.locator(".content img").all():
            wait_until(browser, _IS_SHOWN["img"], picture.element_handle())
        pictures = page.root.locator(".content.picture")
        width, height = (pictures.first.bounding_box()[side] for side in ("width", "height"))
        places = lambda: pictures.evaluate_all(  # noqa: E731
            "all => all.map(each => [each.scrollLeft / each.scrollWidth,"
            " each.scrollTop / each.scrollHeight])"
        )
        browser.keyboard.press("z")
        assert np.allclose(places(), 0.25, atol=0.01)  # the middle, of twice the size
        pictures.first.hover(position={"x": 0.8 * width, "y": 0.2 * height})
        browser.wait_for_timeout(100)
        assert np.allclose(places(), [[0.4, 0.1]] * 2, atol=0.01)
        pictures.nth(1).focus()
        browser.keyboard.press("ArrowLeft")  # moves, and answers nothing
        wait_until(
            browser, "width => document.querySelector('.picture').scrollLeft < 0.78 * width", width
        )
        browser.wait_for_timeout(300)
        check_accessibility(browser)
        first, second = places()
        assert np.allclose(first, second, atol=0.01) and first[0] < 0.39
        page.wait_for(0)
        page.click("Zoom ×2")
        page.click("Zoom ×4")
        assert np.allclose(places(), 0.0)
        assert pictures.first.bounding_box()["width"] == width


@pytest.mark.parametrize("suffix", ["txt", "md"])
def test_words_that_differ_between_long_texts_are_marked(tmp_path, suffix):
    rng = np.random.default_rng(0)
    words = rng.choice(list("abcdefghijklmnopqrstuvwxyz"), 400)
    others = words.copy()
    others[rng.choice(400, 12, replace=False)] = "else"
    texts = {f"{k}.{suffix}": " ".join(each).encode() for k, each in enumerate((words, others))}
    folder = write_files(tmp_path / "essays", texts)
    with judging(folder, log=tmp_path / "log") as (_, address), open_page() as browser:
        page = Page(browser, address)
        button = page.root.get_by_role("button", name="Differences")
        button.wait_for()
        read = """name => [...document.querySelectorAll('.text, iframe')].map(each => {
            const text = each.contentDocument?.body ?? each;
            const ranges = text.ownerDocument.defaultView.CSS.highlights.get(name);
            const own = [...ranges].filter(range => text.contains(range.startContainer));
            return [text.textContent, own.map(range => [range.startOffset, range.endOffset])];
        })"""
        rests = []
        for text, places in browser.evaluate(read, "skpref-differences"):
            assert 10 <= len(places) <= 12  # fewer where moved letters join
            for start, end in sorted(places, reverse=True):
                text = text[:start] + text[end:]
            rests.append(text.split())
        assert rests[0] == rests[1]
        check_accessibility(browser)
        browser.keyboard.press("d")
        assert not any(places for _, places in browser.evaluate(read, "skpref-differences"))
        browser.keyboard.press("1")
        page.wait_for(1)


def test_texts_that_have_little_in_common_are_not_marked(tmp_path):
    texts = {f"{k}.txt": f"{word} and ".encode() * 50 for k, word in enumerate(("ant", "bee"))}
    texts = {name: text.replace(b"and", name[:1].encode()) for name, text in texts.items()}
    folder = write_files(tmp_path / "essays", texts)
    with judging(folder, log=tmp_path / "log") as (_, address), open_page() as browser:
        page = Page(browser, address)
        assert page.root.get_by_role("button", name="Differences").count() == 0


def test_settings_are_tuned_by_pictures_of_a_function(tmp_path, monkeypatch):
    (tmp_path / "render.py").write_text(
        "import numpy as np\n\n\ndef picture(setting):\n"
        "    return np.full((20, 30), setting['strength'])\n"
    )
    space = tmp_path / "space.toml"
    space.write_text("[space]\nstrength = [0.0, 1.0]\n")
    monkeypatch.chdir(tmp_path)
    options = ["--show", "render:picture", "--votes", "3"]
    with judging(space, *options, log=tmp_path / "log") as (_, address), open_page() as browser:
        page = Page(browser, address)
        for n_answers in range(1, 4):
            for picture in page.root.locator(".items img").all():
                wait_until(browser, "each => each.naturalWidth === 30", picture.element_handle())
            browser.keyboard.press("1")
            page.wait_for(n_answers)
        assert page.root.locator(".history img").count() == 3
        for picture in page.root.locator(".history img").all():
            wait_until(browser, _IS_SHOWN["img"], picture.element_handle())
        assert "strength" in page.root.locator(".facts").inner_text()
        page.root.get_by_role("button", name="Copy").wait_for()
        check_accessibility(browser)
        page.page.get_by_role("link", name="Leaderboard").click()
        browser.get_by_text("The best settings so far").wait_for()
        check_accessibility(browser)
