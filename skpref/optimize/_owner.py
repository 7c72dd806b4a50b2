"""Who asked a duel: the process, and whether it still runs."""

import ctypes
import hashlib
import os
import platform
import secrets
import sys
from functools import cache
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_STILL_ACTIVE, _QUERY = 259, 0x1000
_own: dict[int, str] = {}


def owner() -> str:
    """Name of this process, which no other has; a forked child has its own."""
    pid = os.getpid()
    if pid not in _own:
        _own.clear()
        # Where the start of a process cannot be read, something else that is new with each.
        _own[pid] = f"{_machine()}-{pid}-{_started(pid) or secrets.token_hex(6)}"
    return _own[pid]


def is_live(name: str) -> bool:
    """Whether the process of that name runs on this machine.

    One of another machine or container, or of before a restart, counts as ended.
    """
    if name == owner():
        return True
    try:
        machine, number, start = name.split("-")
        pid = int(number)
    except ValueError:
        return False
    # No process has a number below 1: to the system these stand for groups of processes.
    if machine != _machine() or pid < 1 or pid == os.getpid() or not _runs(pid):
        return False
    return _started(pid) in (None, start)


@cache
def _machine():
    """This boot of this machine; processes that see each other have it in common."""
    try:
        text = _BOOT.read_text() + str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        text = platform.node()
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def _started(pid):
    """When a process began, in the system's own ticks; None where that is not told."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
        return text.rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None


def _runs(pid):
    if sys.platform == "win32":
        kernel = ctypes.windll.kernel32
        handle = kernel.OpenProcess(_QUERY, False, pid)
        code = ctypes.c_ulong()
        known = bool(handle) and bool(kernel.GetExitCodeProcess(handle, ctypes.byref(code)))
        if handle:
            kernel.CloseHandle(handle)
        return known and code.value == _STILL_ACTIVE
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    try:  # killed, and not yet waited for
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (OSError, IndexError):
        return True
