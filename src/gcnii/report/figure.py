"""How every figure looks, and how it is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gcnii.atomic import whole

# Okabe and Ito's colours, told apart by colour-blind readers too; markers and dashes tell them apart in grey.
STYLES = (("#0072B2", "o", "-"), ("#D55E00", "s", "--"), ("#009E73", "^", "-."), ("#CC79A7", "D", ":"))


def figure(panels: int) -> Any:
    """A matplotlib figure with so many axes side by side."""
    from matplotlib.figure import Figure  # half a second to import; not for those who draw nothing

    drawing = Figure(figsize=(5.2 * panels, 4), layout="constrained")
    for axes in drawing.subplots(1, panels, squeeze=False)[0]:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
    return drawing


def save(drawing: Any, path: Path) -> Path:
    """Write a PNG; the same figure gives the same bytes."""
    with whole(path) as temporary:
        drawing.savefig(temporary, format="png", dpi=150, metadata={"Software": None})
    return path
