"""The web application: pages, messages and files, and who may have them."""

import json
import time
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from importlib.resources import files
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

from skpref._judging._board import board_page, page_html

# What pages may load and run: files of this server alone. Frames of HTML items inherit it.
_PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' data: blob:; "
    "media-src 'self' data: blob:; frame-src 'self'; style-src 'self' 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# A file that is opened by itself, such as an SVG with a script, can do nothing here.
_FILE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'self'"
_HEADERS = {
    "Content-Security-Policy": _PAGE_POLICY,
    "Cross-Origin-Resource-Policy": "same-origin",  # no other site shows these pictures
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",  # addresses hold tokens
    "Cache-Control": "no-store",
}
# Bytes of a message of the page: a comment and some numbers.
_LARGEST_MESSAGE = 16_384
_LONGEST_NAME = 80
# Requests a second of one client and link, of messages and of all else, with room for those of two
# seconds at once: a person needs a tenth of it.
_RATES = {"POST": 20.0, "GET": 200.0}
_ASSETS = {
    "judge.js": ("skpref.widgets", "text/javascript"),
    "judge.css": ("skpref.widgets", "text/css"),
    "page.js": ("skpref._judging", "text/javascript"),
    "page.css": ("skpref._judging", "text/css"),
    "board.js": ("skpref._judging", "text/javascript"),
}


class Access(NamedTuple):
    """Who may use the pages.

    Attributes
    ----------
    token : str
        Part of every address of whoever runs the server; empty: none is asked for.
    judges : dict of str to str
        Name of each judge by the token of her link; empty: whoever has the token votes under any
        name.
    hosts : sequence of str
        Names and addresses of this server, without port.
    """

    token: str
    judges: Mapping[str, str]
    hosts: Sequence[str]


class _Gate(BaseHTTPMiddleware):
    """Middleware that refuses floods, other sites' messages and large ones, before any work.

    Parameters
    ----------
    app : callable
    links : collection of str
        Tokens that were given out: each has a rate of its own.
    """

    def __init__(self, app: ASGIApp, links: Collection[str]) -> None:
        super().__init__(app)
        self._links = links
        self._levels: OrderedDict[tuple, tuple[float, float]] = OrderedDict()

    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        """Return the answer to a request, or what refuses it, with the headers of all answers."""
        response = self._refuse(request) or await call_next(request)
        for name, value in _HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    def _refuse(self, request: Request) -> Response | None:
        """Return the response that refuses a request; None if it is let through."""
        if self._is_flood(request):
            return PlainTextResponse("Too many requests; wait a second.", 429, {"Retry-After": "1"})
        if request.method != "POST":
            return None
        origin = request.headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
            return PlainTextResponse("A page of another site asked for this.", 403)
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return PlainTextResponse("A page of another site asked for this.", 403)
        if request.headers.get("content-type", "").partition(";")[0] != "application/json":
            return PlainTextResponse("A message is of JSON.", 415)
        return None

    def _is_flood(self, request: Request) -> bool:
        """Return whether a client sends more than its rate, by a leaking bucket for each kind."""
        kind = "POST" if request.method == "POST" else "GET"
        client = request.client.host if request.client else ""
        link, time_now = request.url.path.split("/")[1], time.monotonic()
        name = client, link if link in self._links else "", kind
        level, since = self._levels.pop(name, (0.0, time_now))
        level = max(0.0, level - (time_now - since) * _RATES[kind])
        is_over = level >= 2.0 * _RATES[kind]
        self._levels[name] = level + (not is_over), time_now
        for oldest, (_, last) in list(self._levels.items()):  # empty after two seconds
            if time_now - last <= 2.0:
                break
            del self._levels[oldest]
        return is_over


def make_app(desk: Any, access: Access) -> Starlette:
    """Return the web application of a desk.

    Parameters
    ----------
    desk : VoteDesk or SettingsDesk
        What is asked and answered.
    access : Access
    """
    pages = _Pages(desk, access)
    routes = [
        Route("/", pages.judge_page),
        Route("/message", pages.message, methods=["POST"]),
        Route("/items/{item}", pages.item),
        Route("/board", pages.board),
        Route("/export", pages.export_page),
        Route("/export/{name}", pages.export),
        *(Route(f"/{name}", pages.asset) for name in _ASSETS),
    ]
    return Starlette(
        routes=[*routes, Mount("/{key}", routes=routes)],
        middleware=[
            Middleware(TrustedHostMiddleware, allowed_hosts=list(access.hosts), www_redirect=False),
            Middleware(_Gate, links={access.token, *access.judges}),
        ],
        exception_handlers={ValueError: _answer_error},
    )


def _answer_error(request: Request, error: Exception) -> Response:
    """Return the response to a ValueError: its text as JSON, with status 400."""
    return JSONResponse({"error": str(error)}, 400)


class _Pages:
    """Answers to requests.

    Parameters
    ----------
    desk : VoteDesk or SettingsDesk
    access : Access
    """

    def __init__(self, desk: Any, access: Access) -> None:
        self._desk, self._access = desk, access

    # -- who asks --------------------------------------------------------------------------

    def _read_judge_of_link(self, request: Request, owner: bool = False) -> str:
        """Return the name of the judge to whom a link belongs, empty for a free choice.

        Raises
        ------
        HTTPException
            404 for a link that was never given out; 403 where only whoever runs the server may
            look.
        """
        key = request.path_params.get("key", "")
        judge = self._access.judges.get(key)
        if judge is not None:
            if owner:
                raise HTTPException(403, "This page is for whoever runs the vote.")
            return judge
        if key != self._access.token:
            raise HTTPException(404, "There is no such page. Use the link that you were sent.")
        return ""

    # -- pages -----------------------------------------------------------------------------

    async def judge_page(self, request: Request) -> Response:
        """Return the page to judge on."""
        judge = self._read_judge_of_link(request)
        text = files("skpref._judging").joinpath("page.html").read_text("utf-8")
        kind = "judge" if judge else "owner"
        return Response(text.replace('data-role=""', f'data-role="{kind}"'), media_type="text/html")

    async def asset(self, request: Request) -> Response:
        """Return a script or a style sheet."""
        self._read_judge_of_link(request)
        name = request.url.path.rpartition("/")[2]
        package, mime = _ASSETS[name]
        return Response(files(package).joinpath(name).read_bytes(), media_type=mime)

    async def message(self, request: Request) -> Response:
        """Take a message of the page, and return what it shows then."""
        judge = self._read_judge_of_link(request)
        content = b""
        async for chunk in request.stream():
            content += chunk
            if len(content) > _LARGEST_MESSAGE:
                raise HTTPException(413, "The message is too large.")
        try:
            message = json.loads(content)
        except (ValueError, RecursionError) as error:  # bytes that are no text, too
            raise HTTPException(400, "A message is of JSON, nested little.") from error
        if not isinstance(message, dict):
            raise HTTPException(400, "A message is an object of JSON.")
        judge = judge or self._read_judge_name(message.get("judge"))
        shown = await run_in_threadpool(self._desk.handle_message, judge, message)
        return JSONResponse({**shown, "judge": judge})

    @staticmethod
    def _read_judge_name(name: Any) -> str:
        """Return the name that a judge chose, "judge" for none; HTTPException 400 for others."""
        if name is None or name == "":
            return "judge"
        if not isinstance(name, str) or len(name) > _LONGEST_NAME or not name.isprintable():
            raise HTTPException(400, f"A name has up to {_LONGEST_NAME} printable characters.")
        return name.strip() or "judge"

    async def item(self, request: Request) -> Response:
        """Return the file of an item, or the picture or sound that was made of it."""
        self._read_judge_of_link(request)
        content = await run_in_threadpool(self._desk.item_content, request.path_params["item"])
        if content is None:
            raise HTTPException(404, "There is no such file.")
        mime, body = content
        # The viewer of a PDF is the browser's own, and needs to run.
        policy = "frame-ancestors 'self'" if mime == "application/pdf" else _FILE_POLICY
        headers = {
            "Cache-Control": "private, max-age=3600",
            "Content-Security-Policy": policy,
        }
        response = Response if isinstance(body, bytes) else FileResponse
        return response(body, media_type=mime, headers=headers)

    async def board(self, request: Request) -> Response:
        """Return the leaderboard as it stands."""
        self._read_judge_of_link(request, owner=True)
        return Response(await run_in_threadpool(board_page, self._desk), media_type="text/html")

    async def export_page(self, request: Request) -> Response:
        """Return the page of the files that can be had."""
        self._read_judge_of_link(request, owner=True)
        links = "".join(
            f'<li><a href="export/{name}" download>{name}</a></li>' for name in self._desk.exports
        )
        page = page_html("Export", f"<main><h1>Export</h1><ul>{links}</ul></main>")
        return Response(page, media_type="text/html")

    async def export(self, request: Request) -> Response:
        """Return a file of the votes."""
        self._read_judge_of_link(request, owner=True)
        name = request.path_params["name"]
        if name not in self._desk.exports:
            raise HTTPException(404, "There is no such file.")
        text = await run_in_threadpool(self._desk.exports[name])
        mime = "application/json" if name.endswith(".json") else "text/csv"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(text, media_type=mime, headers=headers)
