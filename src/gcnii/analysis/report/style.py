"""How every figure looks, and how it is written."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import ArrayLike

from gcnii.files import atomic_write, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class LineStyle(NamedTuple):
    """Colour, marker and dash of a line, as matplotlib names them."""

    colour: str
    marker: str
    dash: str


# Okabe and Ito's colours, which colour-blind readers can tell apart; markers and dashes tell them
# apart in grey.
STYLES = (
    LineStyle("#0072B2", "o", "-"),
    LineStyle("#D55E00", "s", "--"),
    LineStyle("#009E73", "^", "-."),
    LineStyle("#CC79A7", "D", ":"),
    LineStyle("#56B4E9", "P", "-"),
    LineStyle("#E69F00", "v", "--"),
)
GREY = "#777777"
# GCNII is the strong blue in every figure; others take what is left, in the order they come.
GCNII_STYLE = STYLES[0]


def style_of(model: str, place: int) -> LineStyle:
    """The style of a model that comes in this place among those of a figure."""
    return GCNII_STYLE if model == "gcnii" else STYLES[1 + place % (len(STYLES) - 1)]


def figure(panels: int, rows: int = 1) -> Figure:
    """A matplotlib figure with this number of axes side by side, in this number of rows."""
    from matplotlib.figure import Figure  # takes half a second: not for those who draw nothing

    drawing = Figure(figsize=(5.2 * panels, 4 * rows), layout="constrained")
    for axes in drawing.subplots(rows, panels, squeeze=False).flat:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
    return drawing


def panels(count: int, across: int) -> Figure:
    """A figure with `count` axes, at most `across` of them side by side."""
    drawing = figure(min(count, across), -(-count // across))
    for spare in drawing.axes[count:]:
        spare.remove()
    return drawing


def draw_line(
    axes: Axes,
    x: ArrayLike,
    y: ArrayLike,
    style: LineStyle,
    label: str,
    *,
    every: int | None = None,
) -> None:
    """Plot y against x, with markers at all points, or only at every n-th."""
    colour, marker, dash = style
    axes.plot(x, y, color=colour, marker=marker, linestyle=dash, label=label, markevery=every)


def draw_bars(
    axes: Axes,
    x: ArrayLike,
    y: ArrayLike,
    error: ArrayLike,
    style: LineStyle,
    label: str,
    *,
    markersize: float = 6,
    linewidth: float = 1.5,
) -> None:
    """Plot y against x, with bars of the height of `error` up and down."""
    axes.errorbar(
        x,
        y,
        error,
        label=label,
        capsize=2,
        color=style.colour,
        marker=style.marker,
        linestyle=style.dash,
        markersize=markersize,
        linewidth=linewidth,
    )


def shared_scale(drawing: Figure) -> None:
    """Give all axes one range of y, so that they can be compared by eye."""
    limits = [limit for axes in drawing.axes for limit in axes.get_ylim()]
    for axes in drawing.axes:
        axes.set_ylim(min(limits), max(limits))


def shared_legend(drawing: Figure) -> None:
    """One legend below all axes: every line once, in as many columns as there is room for."""
    lines = {
        label: line
        for axes in drawing.axes
        for line, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    columns = _columns(list(lines), room=72 * drawing.get_figwidth())
    drawing.legend(
        list(lines.values()),
        list(lines),
        loc="outside lower center",
        ncols=columns,
        frameon=False,
    )


def _columns(labels: list[str], room: float) -> int:
    """How many columns fit: 6.2 points per letter, and 42 per column for its line and gaps.

    Legends are filled column by column.
    """
    for columns in range(len(labels), 1, -1):
        if sum(6.2 * max(map(len, part)) + 42 for part in np.array_split(labels, columns)) <= room:
            return columns
    return 1


def save(drawing: Figure, path: Path) -> Path:
    """Write an SVG if the name ends in .svg, else a PNG; the same figure gives the same bytes."""
    _show_names_as_they_are(drawing)
    with atomic_write(path) as temporary:
        if path.suffix == ".svg":
            temporary.write_text(_svg(drawing, path.stem), "utf-8")
        else:
            drawing.savefig(temporary, format="png", dpi=150, metadata={"Software": None})
    return path


def inline_svg(drawing: Figure, name: str, title: str) -> Markup:
    """An <svg> for a page: as wide as there is room, in the colour of the text around it.

    name  of letters, digits and - alone; the ids of the drawing begin with it
    """
    _show_names_as_they_are(drawing)
    text = _svg(drawing, name, transparent=True)
    (size,) = re.findall(r'viewBox="[^"]+"', text)
    body = re.sub(
        r"^.*?<svg.*?>|<metadata>.*?</metadata>|<style.*?</style>", "", text, flags=re.DOTALL
    )
    # the words between the tags stay as they are
    body = re.sub("<[^>]+>", lambda tag: _for_a_page(tag[0], name), body)
    head = f'<svg {size} role="img" aria-label="{escape(title)}" fill="currentColor"'
    return Markup(f'{head} stroke-linejoin="round" stroke-linecap="butt">{body}')


def _for_a_page(tag: str, name: str) -> str:
    """A tag whose ids are unique in the page, and which has attributes in place of a style.

    A page that allows no styles but its own ignores those of a tag.
    """
    tag = re.sub(
        r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", tag.replace("#000000", "currentColor")
    )
    return re.sub(r'style="([^"]*)"', lambda style: _attributes(style[1]), tag)


def _attributes(style: str) -> str:
    pairs = (each.split(":", 1) for each in style.split(";") if each.strip())
    return " ".join(f'{key.strip()}="{value.strip()}"' for key, value in pairs)


def _show_names_as_they_are(drawing: Figure) -> None:
    """Make titles and legends plain text: `$` begins no formula there, as it does at ticks."""
    legends = [text for legend in drawing.legends for text in legend.get_texts()]
    for text in (*legends, *drawing.texts, *(axes.title for axes in drawing.axes)):
        text.set_parse_math(False)
        text.set_text(visible(text.get_text()))


def _svg(drawing: Figure, name: str, transparent: bool = False) -> str:
    from matplotlib import rc_context

    page = io.StringIO()
    with rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        drawing.savefig(
            page, format="svg", transparent=transparent, metadata={"Date": None, "Creator": None}
        )
    return page.getvalue()
