"""The page of `skpref judge` in a real browser: clicks and keys are votes, and none is lost."""

import csv
import io
import re
import sys
import urllib.request

import pytest
from browser_support import free_port, open_page, served

pytestmark = pytest.mark.browser
PNG = (
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\6\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx\x9cc"
    b"\xf8\xcf\xc0\xf0\x1f\0\5\0\1\xff\x89\x99=\x1d\0\0\0\0IEND\xaeB`\x82"
)
ITEMS = {
    "cat.png": PNG,
    "dog.png": PNG,
    "essay.md": b"# An essay\n\n<script>document.title = 'hacked'</script>",
    "poem.txt": b"A poem\n<b>of two lines</b>",
}


@pytest.fixture
def address(tmp_path):
    """Address of a server on a folder of pictures and texts; it is killed and begun again."""
    folder, port = tmp_path / "things", free_port()
    folder.mkdir()
    for name, content in ITEMS.items():
        (folder / name).write_bytes(content)
    command = [sys.executable, "-m", "skpref", "judge", str(folder), "--no-browser"]
    command += ["--port", str(port)]

    def serve():
        return served(command, f"http://127.0.0.1:{port}/", tmp_path / "log")

    return f"http://127.0.0.1:{port}", serve


def wait_for(page, n):
    """Until so many answers are told."""
    words = re.compile(rf"^{n}( of \d+)? answers?$")
    page.locator(".told").filter(has_text=words).wait_for(timeout=30_000)


def contents(page):
    """What is shown of the two items; their names are not."""
    return page.locator("figure.item").evaluate_all("all => all.map(item => item.innerHTML)")


def exported(address):
    with urllib.request.urlopen(f"{address}/export/votes.csv", timeout=30) as response:
        return list(csv.DictReader(io.StringIO(response.read().decode())))


def test_clicks_keys_undo_and_skip_are_recorded(address):
    url, serve = address
    with serve(), open_page() as page:
        problems = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(url)
        wait_for(page, 0)
        page.locator(".skpref-judge button.best, .skpref-judge button").first.click()
        wait_for(page, 1)
        page.keyboard.press("2")
        wait_for(page, 2)
        page.keyboard.press("0")
        wait_for(page, 3)
        assert page.locator(".history li").first.inner_text() == "no difference"
        page.keyboard.press("u")
        wait_for(page, 2)
        page.keyboard.press("s")
        page.wait_for_timeout(500)
        wait_for(page, 2)
        assert [row["winner"] for row in exported(url)] == ["a", "b"]
        assert page.title() != "hacked" and not problems


def test_a_kill_asks_the_same_and_loses_nothing(address):
    url, serve = address
    with open_page(400, 800) as page:
        with serve():
            page.goto(url)
            wait_for(page, 0)
            page.keyboard.press("1")
            wait_for(page, 1)
            shown = contents(page)
        with serve():
            page.reload()
            wait_for(page, 1)
            assert contents(page) == shown
        page.keyboard.press("1")  # nobody answers
        page.get_by_text("Your answer is sent again").wait_for(timeout=30_000)
        with serve():
            wait_for(page, 2)
            assert [row["winner"] for row in exported(url)] == ["a", "a"]
            assert page.evaluate("document.documentElement.scrollWidth") <= 400
            page.goto(f"{url}/board")
            page.get_by_text("Votes: 2.").wait_for(timeout=30_000)
