"""Draws the rooms of the package and their imports: `python doc/draw_rooms.py` writes the picture.

A box is a folder or a single file of ``skpref/`` with the first sentence of its docstring. An arrow
leads from a room to one that it imports; arrows that follow from others are left out.
"""

import ast
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "skpref"
PICTURE = ROOT / "doc" / "images" / "rooms.svg"
WIDTH, HEIGHT, ACROSS, DOWN = 176, 70, 22, 40
LETTERS = 30  # of a line in a box
# Columns of the rooms, by hand, so that few arrows cross; the rows follow from the imports.
COLUMNS = {
    "__main__": 0.0,
    "_command": 0.0,
    "_judging": 3.0,
    "collaborative": 1.0,
    "io": 1.55,
    "plotting": 2.0,
    "optimize": 4.5,
    "integrations": 4.5,
    "widgets": 3.0,
    "_estimator": 1.0,
    "inspection": 2.0,
    "active": 4.0,
    "fitting": 3.0,
    "inference": 3.0,
    "gp": 2.6,
    "datasets": 5.3,
    "metrics": 0.93,
    "model_selection": 0.0,
    "preprocessing": 1.87,
    "likelihoods": 2.8,
    "duels": 0.0,
    "data": 1.5,
    "kernels": 3.7,
    "samplers": 4.6,
    "_utils": 3.0,
}


def room_of(path: Path) -> str:
    """Folder or single file in which a module stands."""
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else path.stem


def rooms() -> dict[str, str]:
    """First sentence of the docstring of each room."""
    found = {}
    for path in sorted([*PACKAGE.glob("*.py"), *PACKAGE.glob("*/__init__.py")]):
        name = path.parent.name if path.name == "__init__.py" else path.stem
        if name != PACKAGE.name:
            text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
            found[name] = (
                " ".join(text.split("\n\n")[0].split()).split(". ")[0].rstrip(".")
            )
    return found


def imports() -> dict[str, set[str]]:
    """Rooms that each room imports."""
    found: dict[str, set[str]] = {name: set() for name in rooms()}
    for path in PACKAGE.rglob("*.py"):
        name = room_of(path)
        if name not in found:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
                "skpref."
            ):
                other = node.module.split(".")[1]
                if other != name:
                    found[name].add(other)
    return found


def reached(graph: dict[str, set[str]], name: str) -> set[str]:
    """All rooms that a room depends on."""
    below = set(graph[name])
    for other in graph[name]:
        below |= reached(graph, other)
    return below


def reduced(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """The graph without the arrows that follow from others."""
    return {
        name: {
            other
            for other in others
            if not any(other in reached(graph, via) for via in others - {other})
        }
        for name, others in graph.items()
    }


def floors(graph: dict[str, set[str]]) -> dict[str, int]:
    """Length of the longest way from each room down to one that imports nothing."""
    found: dict[str, int] = {}

    def floor(name: str) -> int:
        if name not in found:
            found[name] = 1 + max((floor(other) for other in graph[name]), default=-1)
        return found[name]

    for name in graph:
        floor(name)
    return found


def lines_of(text: str) -> list[str]:
    """Text in lines for a box, three at most."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + len(word) + 1 > LETTERS:
            if len(lines) == 3:
                lines[-1] = lines[-1].rstrip(",:;") + " …"
                break
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def drawn() -> str:
    """The picture, as SVG."""
    graph = reduced(imports())
    floor = floors(graph)
    top = max(floor.values())
    width = round((max(COLUMNS.values()) + 1) * (WIDTH + ACROSS) + ACROSS)
    height = (top + 1) * (HEIGHT + DOWN)
    corner = {
        name: (
            ACROSS + COLUMNS[name] * (WIDTH + ACROSS),
            DOWN / 2 + (top - floor[name]) * (HEIGHT + DOWN),
        )
        for name in graph
    }
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="10">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#7a7a7a"/></marker></defs>',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for name, others in sorted(graph.items()):
        x, y = corner[name]
        for other in sorted(others):
            a, b = corner[other]
            start, end = (x + WIDTH / 2, y + HEIGHT), (a + WIDTH / 2, b)
            bend = (end[1] - start[1]) / 2
            parts.append(
                f'<path d="M{start[0]:.0f} {start[1]:.0f}C{start[0]:.0f} {start[1] + bend:.0f} '
                f'{end[0]:.0f} {end[1] - bend:.0f} {end[0]:.0f} {end[1]:.0f}" fill="none" '
                'stroke="#7a7a7a" marker-end="url(#tip)"/>'
            )
    for name, text in sorted(rooms().items()):
        x, y = corner[name]
        folder = (PACKAGE / name).is_dir()
        parts.append(
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{WIDTH}" height="{HEIGHT}" rx="6" '
            f'fill="{"#dbe9f6" if folder else "#f3efe2"}" stroke="#4a6a8a"/>'
        )
        title = f"{name}/" if folder else f"{name}.py"
        middle = x + WIDTH / 2
        parts.append(
            f'<text x="{middle:.0f}" y="{y + 19:.0f}" text-anchor="middle" font-size="13" '
            f'font-weight="bold">{escape(title)}</text>'
        )
        for k, line in enumerate(lines_of(text)):
            parts.append(
                f'<text x="{middle:.0f}" y="{y + 35 + 13 * k:.0f}" '
                f'text-anchor="middle">{escape(line)}</text>'
            )
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(drawn(), encoding="utf-8")
