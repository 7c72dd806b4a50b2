"""The command's work: from arguments to a server that runs until it is stopped."""

import csv
import errno
import secrets
import socket
import sys
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import Any

import uvicorn

from skpref._judging._desk import VoteDesk
from skpref._judging._items import read_features, read_items
from skpref._judging._planning import VoteForm, VoteGoals
from skpref._judging._server import Access, make_app
from skpref._judging._settings import SettingsDesk
from skpref._judging._store import VoteStore
from skpref._utils import check_number, printable_text

_PORT = 8765
_LOCAL = ("127.0.0.1", "localhost", "[::1]")
_MOST_CONNECTIONS = 500


def serve_judging(arguments: Any) -> None:
    """Serve the pages of the command's arguments until it is interrupted.

    Raises
    ------
    ValueError, OSError, ImportError
        If the arguments, the folder, the table, the settings or the store are not as they must be.
    """
    desk = make_desk(arguments)
    try:
        listener = _open_listener(arguments.host or _LOCAL[0], arguments.port)
        port = listener.getsockname()[1]
        hosts = _reachable_hosts(arguments.host)
        names = [] if arguments.judges is None else read_judges(arguments.judges)
        access = make_access(desk, names, arguments.host, hosts)
        _print_addresses(desk, access, hosts, port)
        if not arguments.no_browser:
            path = f"{access.token}/" if access.token else ""
            webbrowser.open(f"http://{_LOCAL[0]}:{port}/{path}")
        config = uvicorn.Config(
            make_app(desk, access),
            log_level="warning",
            limit_concurrency=_MOST_CONNECTIONS,
            server_header=False,
            proxy_headers=False,
        )
        uvicorn.Server(config).run(sockets=[listener])
    finally:
        desk.close()


def make_desk(arguments: Any) -> Any:
    """Return the desk of votes or of settings that the arguments of the command ask for.

    Raises
    ------
    ValueError, OSError
        If the arguments, the folder, the table, the settings or the store are not as they must be.
    """
    _check_arguments(arguments)
    path = arguments.what
    if path.suffix.lower() == ".toml":
        return SettingsDesk.from_arguments(arguments)
    source = read_items(path, arguments.text, arguments.competitor, arguments.prompt)
    for note in source.notes:
        _write_line(f"skpref: note: {note}")
    n_competitors = len(source.competitors)
    if arguments.top is not None and arguments.top >= n_competitors:
        raise ValueError(
            f"got --top {arguments.top} of {n_competitors} items; fewer than all are allowed. "
            "Give a smaller number, or leave it out."
        )
    goals = VoteGoals(arguments.checks, arguments.votes, arguments.until, arguments.top)
    if n_competitors > 10 and goals == VoteGoals(arguments.checks):
        _write_line(
            f"skpref: note: questions are about the whole order of {n_competitors} items. --top 5 "
            "asks who the first five are, which takes about a quarter of the votes; --votes or "
            "--until ends it."
        )
    features = None if arguments.features is None else read_features(arguments.features, source)
    folder = path.resolve()
    store = VoteStore(arguments.file or folder.with_name(f"{folder.name}.votes.db"))
    try:
        return VoteDesk(
            store,
            source,
            VoteForm(arguments.size, arguments.answer, arguments.grades),
            goals,
            features=features,
            prompt=arguments.question,
        )
    except BaseException:
        store.close()
        raise


def _check_arguments(arguments: Any) -> None:
    """Raise ValueError for arguments that do not go together, before any work."""
    if not arguments.what.exists():
        raise ValueError(
            f"got {arguments.what}, which is not there; give a folder, a table or a space.toml."
        )
    check_number("--size", arguments.size, low=2, high=9, integer=True)
    check_number("--checks", arguments.checks, low=0.0, high=0.5)
    if arguments.until is not None:
        check_number("--until", arguments.until, low=0.5, high=1.0, open_low=True, open_high=True)
    if arguments.top is not None:
        check_number("--top", arguments.top, low=1, integer=True)
    if arguments.size > 2 and arguments.grades:
        raise ValueError(f"got --grades with --size {arguments.size}; grades are of pairs alone.")
    if arguments.size == 2 and arguments.answer != "best":
        raise ValueError(f"got --answer {arguments.answer} with pairs; add --size 4.")


def read_judges(path: Path) -> list[str]:
    """Return the names of judges: the first column of a CSV, a line each.

    A first line "judge", "name" or "email" is a head.

    Raises
    ------
    ValueError
        If a name stands twice, or there is none.
    """
    with path.open(encoding="utf-8-sig", newline="") as file:
        names = [row[0].strip() for row in csv.reader(file) if row and row[0].strip()]
    if names and names[0].lower() in ("judge", "judges", "name", "email"):
        names = names[1:]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"got {len(names)} names in {path}; give each judge once, a line each.")
    return names


def make_access(desk: Any, names: list[str], host: str | None, hosts: list[str]) -> Access:
    """Return who may use the pages; links are kept, so that they hold after a restart."""
    token = ""
    if host is not None or names:
        token = desk.store.keep_setting("token", secrets.token_urlsafe(16))
    judges = {
        desk.store.keep_setting(f"judge {name}", secrets.token_urlsafe(16)): name for name in names
    }
    return Access(token, judges, [*_LOCAL, *hosts])


def _open_listener(host: str, port: int | None) -> socket.socket:
    """Return a listening socket, at any free port if the usual one is taken; OSError for others."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, _PORT if port is None else port), family=family)
    except OSError as error:
        if error.errno == errno.EADDRINUSE and port is None:
            return _open_listener(host, 0)
        raise OSError(
            f"got --host {host} and --port {port}, which cannot be listened at: "
            f"{error.strerror}. Give another."
        ) from error


def _reachable_hosts(host: str | None) -> list[str]:
    """Return the addresses and names under which others reach the server."""
    if host is None:
        return []
    if host not in ("0.0.0.0", "::", ""):
        return [f"[{host}]" if ":" in host else host]
    hosts = [socket.gethostname()]
    with suppress(OSError):
        hosts += {str(entry[4][0]) for entry in socket.getaddrinfo(hosts[0], None, socket.AF_INET)}
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # of documentation: nothing is sent
        hosts.append(probe.getsockname()[0])
    return [each for each in dict.fromkeys(hosts) if each not in _LOCAL]


def _print_addresses(desk: Any, access: Access, hosts: list[str], port: int) -> None:
    """Print where the pages are and where the votes go."""
    path = f"{access.token}/" if access.token else ""
    for host in hosts or _LOCAL[:1]:
        _write_line(f"skpref: vote at http://{host}:{port}/{path}")
    _write_line(f"skpref: board at http://{(hosts or _LOCAL)[0]}:{port}/{path}board")
    for key, name in access.judges.items():
        _write_line(f"skpref: link of {name}: http://{(hosts or _LOCAL)[0]}:{port}/{key}/")
    _write_line(f"skpref: votes are in {desk.path}; Ctrl-C ends.")


def _write_line(line: str) -> None:
    """Write one line to the terminal, control characters escaped."""
    sys.stdout.write(printable_text(line) + "\n")
    sys.stdout.flush()
