"""Whether what an engine is about to allocate fits into memory."""

import os
from collections.abc import Iterator
from pathlib import Path

try:
    import resource
except ImportError:  # pragma: no cover - not on Windows
    resource = None  # type: ignore[assignment] # a module by its type, None where there is none


def available_bytes() -> float:
    """Return the bytes that may be allocated now: of free memory, process limits and control
    groups.

    Infinite where the system does not tell.
    """
    limits = [_physical_bytes(), _free_bytes(Path("/proc/meminfo"))]
    limits += _control_group_bytes(Path("/proc/self/cgroup"), Path("/sys/fs/cgroup"))
    if resource is not None:
        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            limits.append(max(limit - _address_space(), 0.0))
    return min(limits)


def check_memory(n_bytes: float, purpose: str, remedy: str) -> None:
    """Raise MemoryError if so many bytes are not available.

    Parameters
    ----------
    n_bytes : float
    purpose : str
        What takes them, the subject of a sentence.
    remedy : str
        What to do instead, a sentence.
    """
    if has_memory(n_bytes):
        return
    free = available_bytes()
    if n_bytes > free:
        raise MemoryError(
            f"{purpose} takes about {n_bytes / 1e9:.2g} GB of memory, {free / 1e9:.2g} GB are "
            f"available. {remedy}"
        )


def has_memory(n_bytes: float) -> bool:
    """Tell whether so many bytes are available."""
    return n_bytes <= available_bytes()


def check_exact(n_bytes: float, n_rows: int, n_items: int) -> None:
    """Raise MemoryError if exact inference of so many bytes does not fit.

    Parameters
    ----------
    n_bytes : float
        Held at most, see `Cost`.
    n_rows, n_items : int
        Distinct comparisons and items.
    """
    if not has_memory(n_bytes):
        check_memory(
            n_bytes,
            f"Exact inference for {n_rows} distinct comparisons among {n_items} items",
            "Use inference=SVI(n_inducing=500), which takes duels and ties of items with features, "
            "or fit fewer comparisons and items.",
        )


def _free_bytes(meminfo: Path) -> float:
    """Return the bytes free without swapping; infinite where the system does not tell."""
    try:
        lines = meminfo.read_text(encoding="ascii").splitlines()
        return 1024.0 * float(dict(line.split(":") for line in lines)["MemAvailable"].split()[0])
    except (OSError, ValueError, KeyError):  # pragma: no cover - not on every system
        return float("inf")


def _control_group_bytes(of_process: Path, root: Path) -> Iterator[float]:
    """Yield the bytes below the limit of each memory control group of the process."""
    try:
        lines = of_process.read_text(encoding="utf-8").splitlines()
    except OSError:  # pragma: no cover - not on every system
        return
    for number, kinds, path in (line.split(":", 2) for line in lines if line.count(":") >= 2):
        if number == "0" and not kinds:
            mount, names = root, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in kinds.split(","):
            mount = root / "memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        group = mount / path.lstrip("/")
        for each in (group, *group.parents):
            n_bytes = _group_bytes(each, *names)
            if n_bytes is not None:
                yield n_bytes
            if each == mount:
                break


def _group_bytes(group: Path, limit: str, usage: str, cache: str) -> float | None:
    """Return the free bytes below a control group's limit, file caches as free; None without a
    limit."""
    try:
        most = (group / limit).read_text(encoding="ascii").strip()
        if most == "max":
            return None
        used = float((group / usage).read_text(encoding="ascii"))
        stat = (group / "memory.stat").read_text(encoding="ascii").split()
        cache_bytes = dict(zip(stat[::2], stat[1::2], strict=True)).get(cache, "0")
        return max(float(most) - used + float(cache_bytes), 0.0)
    except (OSError, ValueError):
        return None


def _physical_bytes() -> float:
    """Return the bytes of the machine's memory; infinite where the system does not tell."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # pragma: no cover - not on Windows
        return float("inf")


def _address_space() -> float:
    """Return the bytes of addresses that the process has taken; 0 where unknown."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return float(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):  # pragma: no cover - not on every system
        return 0.0
