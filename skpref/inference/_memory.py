"""Whether what an engine is about to allocate fits into memory."""

import os

try:
    import resource
except ImportError:  # pragma: no cover - not on Windows
    resource = None  # type: ignore[assignment] # a module by its type, None where there is none


def available() -> float:
    """Bytes that may be allocated: of the machine's memory, and of the process's own limit.

    Infinite where the system does not tell.
    """
    found = [_physical()]
    if resource is not None:
        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            found.append(max(limit - _address_space(), 0.0))
    return min(found)


def check_memory(n_bytes: float, what: str, remedy: str) -> None:
    """Raise MemoryError if so many bytes are not to be had.

    Parameters
    ----------
    n_bytes : float
    what : str
        What takes them, the subject of a sentence.
    remedy : str
        What to do instead, a sentence.
    """
    free = available()
    if n_bytes > free:
        raise MemoryError(
            f"{what} takes about {n_bytes / 1e9:.2g} GB of memory, {free / 1e9:.2g} GB are to be "
            f"had. {remedy}"
        )


def _physical() -> float:
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # pragma: no cover - not on Windows
        return float("inf")


def _address_space() -> float:
    """Bytes of addresses that the process has taken; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return float(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):  # pragma: no cover - not on every system
        return 0.0
