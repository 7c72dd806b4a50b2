"""Every link and anchor inside a built site leads somewhere, and no page loads from the network.

``python doc/_site/check.py doc/_build/html`` prints what is broken, and fails if anything is.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"img": "src", "script": "src", "source": "src", "iframe": "src"}
# A page may say where it is to be found on the network; that loads nothing.
NAMED = {"canonical", "alternate", "search", "author", "copyright"}


class Page(HTMLParser):
    """The anchors of a page, the links on it, and what it loads."""

    def __init__(self, text: str):
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href") is not None:
            self.links.append(given["href"])
        elif tag == "link" and given.get("href"):
            rel = set((given.get("rel") or "").split())
            (
                self.links if rel & (NAMED | {"next", "prev", "index"}) else self.loaded
            ).append(given["href"])
        elif given.get(LOADED.get(tag, "")):
            self.loaded.append(given[LOADED[tag]])


def broken(site: Path) -> list[str]:
    """What is wrong on the pages of the site in a folder, one line each."""
    site = site.resolve()
    paths = sorted(
        set(site.rglob("*.html")) - set(site.glob("_static/*.html"))
    )  # a theme's own
    pages = {path: Page(path.read_text("utf-8")) for path in paths}
    found = []
    for path, page in pages.items():
        here = path.relative_to(site).as_posix()
        for link in page.loaded + page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loaded and parts.scheme != "data":
                    found.append(f"{here}: loads {link} from the network")
                continue
            there = (
                path
                if not parts.path
                else (path.parent / unquote(parts.path)).resolve()
            )
            anchor = unquote(parts.fragment)
            if there.is_dir():
                there = there / "index.html"
            if not there.is_relative_to(site):
                found.append(f"{here}: {link} leads out of the site")
            elif not there.is_file():
                found.append(f"{here}: there is no {link}")
            elif anchor and there in pages and anchor not in pages[there].anchors:
                found.append(f"{here}: there is no anchor {link}")
    return found


def main(folder: str) -> int:
    found = broken(Path(folder))
    print("\n".join(found))
    n = len(list(Path(folder).rglob("*.html")))
    print(f"{n} pages, {len(found)} broken links")
    return 1 if found or not n else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
