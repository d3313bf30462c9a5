"""How every figure looks, and how it is written."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import ArrayLike

from gcnii.errors import visible
from gcnii.files import atomic_write, first_bytes, refuse_replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class LineStyle(NamedTuple):
    """Colour, marker and dash of a line, as matplotlib names them."""

    colour: str
    marker: str
    dash: str

    @property
    def how(self) -> dict[str, Any]:
        """What `plot` and `errorbar` take."""
        return {"color": self.colour, "marker": self.marker, "linestyle": self.dash}


# Okabe and Ito's colours, which colour-blind readers can tell apart; markers and dashes tell them
# apart in grey.  GCNII is the strong blue in every figure, and nothing else is; GCNII*, with two
# weights per layer, is light blue.
GCNII_STYLE = LineStyle("#0072B2", "o", "-")
STAR_STYLE = LineStyle("#56B4E9", "P", "-")
FAMILY = {
    "gcnii": GCNII_STYLE,
    "gcnii-ppi": GCNII_STYLE._replace(marker="h", dash="--"),
    "gcnii-star": STAR_STYLE,
    "gcnii-star-printed": STAR_STYLE._replace(marker="X", dash="--"),
    "gcnii-star-ppi": STAR_STYLE._replace(marker="*", dash=":"),
}
# Other models in the order they come, and lines that are not of a model.
OTHERS = (
    LineStyle("#D55E00", "s", "--"),
    LineStyle("#009E73", "^", "-."),
    LineStyle("#CC79A7", "D", ":"),
    LineStyle("#E69F00", "v", "--"),
    LineStyle("#000000", "p", "-."),
)
# Marker and dash of lines that share a colour with an earlier one.
REPEATED = (("<", "-"), (">", ":"), ("8", "--"), ("X", "-."))
# From shallow to deep: light to dark, and without blue.
RAMP = (
    LineStyle("#F0A830", "o", "-"),
    LineStyle("#EB7A34", "s", "--"),
    LineStyle("#D64F3E", "^", "-."),
    LineStyle("#B13A63", "D", ":"),
    LineStyle("#8A3A80", "P", "-"),
    LineStyle("#654094", "v", "--"),
)
GREY = "#777777"
AT_150 = b"pHYs\x00\x00\x17\x12\x00\x00\x17\x12\x01"  # 150 dots per inch, as a chunk of a PNG


def styles_of(labels: Iterable[str]) -> dict[str, LineStyle]:
    """The styles of one figure's lines, by model, or by labels such as "GCNII, 64 layers"."""
    found: dict[str, LineStyle] = {}
    others = cycle(OTHERS)
    for label in dict.fromkeys(labels):
        style = FAMILY.get(_model(label)) or next(others)
        repeats = (style._replace(marker=marker, dash=dash) for marker, dash in REPEATED)
        free = (one for one in (style, *repeats) if one not in found.values())
        found[label] = next(free, style)
    return found


def style_of(label: str) -> LineStyle:
    """The style of a line that is alone."""
    return styles_of([label])[label]


def ramp_of(depths: Iterable[int]) -> dict[int, LineStyle]:
    """The styles of lines that differ in depth alone, from shallow to deep."""
    order = sorted(set(depths))
    last = max(len(order) - 1, 1)
    return {depth: RAMP[i * (len(RAMP) - 1) // last] for i, depth in enumerate(order)}


def _model(label: str) -> str:
    """The model of a label: "GCNII*, 2 channels" is of gcnii-star."""
    return label.replace("*", "-star").replace(":", ",").partition(",")[0].lower()


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
    axes.plot(x, y, label=label, markevery=every, **style.how)


def draw_bars(
    axes: Axes,
    x: ArrayLike,
    y: ArrayLike,
    error: ArrayLike,
    style: LineStyle,
    label: str,
    **sizes: Any,
) -> None:
    """Plot y against x, with bars of the height of `error` up and down."""
    axes.errorbar(x, y, error, label=label, capsize=2, **style.how, **sizes)


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


def save(drawing: Figure, path: Path, *, overwrite: bool = False) -> Path:
    """Write an SVG if the name ends in .svg, else a PNG; the same figure gives the same bytes."""
    refuse_replacing(path, is_figure, overwrite=overwrite)
    _show_names_as_they_are(drawing)
    with atomic_write(path) as temporary:
        if path.suffix == ".svg":
            temporary.write_text(_svg(drawing, path.stem), "utf-8")
        else:
            drawing.savefig(temporary, format="png", dpi=150, metadata={"Software": None})
    return path


def is_figure(path: Path) -> bool:
    """Whether a file is as `save` writes it, and as few others do: without program and date."""
    head = first_bytes(path)
    if path.suffix == ".svg":
        return b"<cc:Work>" in head and b"<dc:date>" not in head and b"<dc:creator>" not in head
    return head[:4] == b"\x89PNG" and head[37:50] == AT_150 and head[58:62] == b"IDAT"


def inline_svg(drawing: Figure, name: str, title: str) -> Markup:
    """An <svg> for a page: as wide as there is room, in the colour of the text around it.

    name  with which the ids of the drawing begin; it may come from the data
    """
    name = re.sub("[^A-Za-z0-9-]", lambda sign: f"_{ord(sign[0]):x}", name)
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


def depth_axis(axes: Axes, depths: Iterable[int]) -> None:
    """Test accuracy against the number of layers, doubling from tick to tick."""
    depths = sorted(depths)
    axes.set_xscale("log", base=2)
    axes.set_xticks(depths, [str(layers) for layers in depths])
    axes.set(xlabel="layers", ylabel="test accuracy (%)")
