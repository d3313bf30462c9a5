"""How every figure looks, and how it is written."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np

from gcnii.files import atomic_write

# Okabe and Ito's colours, told apart by colour-blind readers too; markers and dashes tell them
# apart in grey.
STYLES = (
    ("#0072B2", "o", "-"),
    ("#D55E00", "s", "--"),
    ("#009E73", "^", "-."),
    ("#CC79A7", "D", ":"),
    ("#56B4E9", "P", "-"),
    ("#E69F00", "v", "--"),
)


def figure(panels: int, rows: int = 1) -> Any:
    """A matplotlib figure with so many axes side by side, in so many rows."""
    from matplotlib.figure import Figure  # half a second to import; not for those who draw nothing

    drawing = Figure(figsize=(5.2 * panels, 4 * rows), layout="constrained")
    for axes in drawing.subplots(rows, panels, squeeze=False).flat:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
    return drawing


def shared_scale(drawing: Any) -> None:
    """One range of y for all axes, so that they can be compared by eye."""
    top, bottom = (
        f(limit for axes in drawing.axes for limit in axes.get_ylim()) for f in (max, min)
    )
    for axes in drawing.axes:
        axes.set_ylim(bottom, top)


def shared_legend(drawing: Any) -> None:
    """Below all axes: every line that any of them has, once, in as many columns as there is room
    for.
    """
    lines = {
        label: line
        for axes in drawing.axes
        for line, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    columns = _columns(list(lines), room=72 * drawing.get_figwidth())
    drawing.legend(lines.values(), lines, loc="outside lower center", ncols=columns, frameon=False)


def _columns(labels: list[str], room: float) -> int:
    """At 6.2 points a letter, and 42 for a column's line and gaps; legends are filled column by
    column.
    """
    for columns in range(len(labels), 1, -1):
        if sum(6.2 * max(map(len, part)) + 42 for part in np.array_split(labels, columns)) <= room:
            return columns
    return 1


def save(drawing: Any, path: Path) -> Path:
    """Write a PNG, or an SVG where the name ends so; the same figure gives the same bytes."""
    with atomic_write(path) as temporary:
        if path.suffix == ".svg":
            temporary.write_text(_svg(drawing, path.stem), "utf-8")
        else:
            drawing.savefig(temporary, format="png", dpi=150, metadata={"Software": None})
    return path


def inline_svg(drawing: Any, name: str, title: str) -> str:
    """An <svg> to stand within a page: as wide as there is room, its ink the colour of the text
    around it.
    """
    text = _svg(drawing, name, transparent=True)
    (size,) = re.findall(r'viewBox="[^"]+"', text)
    body = re.sub(r"^.*?<svg.*?>|<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    body = body.replace("#000000", "currentColor")
    body = re.sub(r'(\bid="|href="#|url\(#)', rf"\1{name}-", body)  # an id stands once in a page
    return f'<svg {size} role="img" aria-label="{title}" fill="currentColor">{body}'


def _svg(drawing: Any, name: str, transparent: bool = False) -> str:
    from matplotlib import rc_context

    page = io.StringIO()
    with rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        drawing.savefig(
            page, format="svg", transparent=transparent, metadata={"Date": None, "Creator": None}
        )
    return page.getvalue()
