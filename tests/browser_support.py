"""A headless Chromium of the system, and servers on free local ports, for the tests of pages."""

import contextlib
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest


@contextlib.contextmanager
def open_page(width: int = 1280, height: int = 900, **options: object) -> Iterator:
    """A page of a browser that is closed at the end; skips where there is no browser.

    Options, such as has_touch and color_scheme, are those of Playwright's new_page.
    """
    api = pytest.importorskip("playwright.sync_api")
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.skip("there is no Chromium on this machine")
    with api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield browser.new_page(viewport={"width": width, "height": height}, **options)
        finally:
            browser.close()


def wait_until(page, expression: str, argument: object = None, *, seconds: float = 30.0) -> None:
    """Return once a JavaScript expression, or function of one argument, is true on the page.

    Playwright's wait_for_function compiles its text again in the page at every look. The pages'
    rule that no text becomes code refuses that, but for the first look.
    """
    end = time.monotonic() + seconds
    while not page.evaluate(expression, argument):
        if time.monotonic() > end:
            pytest.fail(f"{expression!r} was not true on the page within {seconds:g} s")
        page.wait_for_timeout(20)


def check_accessibility(page) -> None:
    """Fail where axe has something serious against a page, at the place where it is now."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    violations = axe.run(page).response["violations"]
    serious = [
        (each["id"], [node["html"] for node in each["nodes"]])
        for each in violations
        if each["impact"] in ("serious", "critical")
    ]
    assert not serious, serious


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextlib.contextmanager
def served(
    command: Sequence[str],
    url: str,
    log: Path,
    seconds: float = 60,
    environment: dict[str, str] | None = None,
) -> Iterator:
    """A server, a process of its own, that answers at `url`; it is killed at the end."""
    started = {"stdout": log.open("ab"), "stderr": subprocess.STDOUT, "env": environment}
    with started["stdout"], subprocess.Popen(command, **started) as process:
        try:
            end = time.monotonic() + seconds
            while True:
                try:
                    urllib.request.urlopen(url, timeout=5).close()
                    break
                except urllib.error.HTTPError:
                    break  # it answers
                except OSError:
                    if process.poll() is not None or time.monotonic() > end:
                        raise RuntimeError(f"no server at {url}: {log.read_text()}") from None
                    time.sleep(0.1)
            yield process
        finally:
            process.kill()
