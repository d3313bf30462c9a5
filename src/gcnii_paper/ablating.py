"""What each option of GCNII+ gives: results/beyond/ablation as tables for docs/beyond.md."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gcnii.files import Document, read_document

RECORD = "record"
BY_DEPTH = "-by-depth"
SCORES = {"val": "Validation", "test": "Test"}
SHAPE = {
    "graph": str,
    "command": str,
    "rows": {str: {"val": [float], "test": [float], "seconds": float}},
}


def read_ablations(folder: Path) -> dict[str, Document]:
    """file name → what benchmarks/ablating.py wrote."""
    paths = sorted(folder.glob("*.json"))
    return {path.stem: read_document(path, SHAPE, "ablation", dict) for path in paths}


def ablation_tables(found: dict[str, Document]) -> str:
    """One table of differences on validation nodes, one on test nodes, and attention by depth."""
    around = [one for name, one in found.items() if not name.endswith(BY_DEPTH)]
    deep = [one for name, one in found.items() if name.endswith(BY_DEPTH)]
    parts = [_differences(around, score) for score in SCORES] if around else []
    parts += [_by_depth(one) for one in deep]
    commands = [f"    {one['command']}" for one in (*around, *deep)]
    return "\n".join([*parts, *commands]) + "\n"


def _differences(found: Sequence[Document], score: str) -> str:
    """A row for each change, a column for each graph; a dot where the record has that value."""
    labels = list(dict.fromkeys(label for one in found for label in one["rows"]))
    labels.remove(RECORD)
    settings = list(dict.fromkeys(map(_setting, labels)))
    # The values of a setting stand together; what was left out comes last.
    labels.sort(key=lambda label: (_setting(label) is None, settings.index(_setting(label))))
    heads = [SCORES[score], *(one["graph"] for one in found)]
    lines = [f"|{'|'.join(heads)}|", f"|{'---|' * len(heads)}"]
    own = [100 * np.mean(one["rows"][RECORD][score]) for one in found]
    lines.append(f"|the record|{'|'.join(f'{mean:.1f}' for mean in own)}|")
    lines += [
        f"|{label}|{'|'.join(_cell(one, label, score) for one in found)}|" for label in labels
    ]
    return "\n".join([*lines, ""])


def _cell(found: Document, label: str, score: str) -> str:
    rows, setting = found["rows"], _setting(label)
    if label in rows:
        return _gap(_array(rows[label][score]) - _array(rows[RECORD][score]))
    changed = setting is not None and any(_setting(other) == setting for other in rows)
    return "●" if changed else "–"


def _setting(label: str) -> str | None:
    """`row_norm` of `row_norm length`; None of what is not a value of a setting."""
    name, _, value = label.partition(" ")
    return name if value and name.islower() and label not in LEFT_OUT else None


LEFT_OUT = ("attention", "in-links", "hops", "batch norm")


def _gap(gaps: NDArray[np.float64]) -> str:
    error = gaps.std(ddof=1) / np.sqrt(len(gaps))
    return f"{100 * gaps.mean():+.1f} ± {100 * error:.1f}"


def _by_depth(found: Document) -> str:
    """The paper's GCNII on one graph at several depths, without and with attention."""
    heads = (found["graph"], "validation", "test", "seconds")
    lines = [f"|{'|'.join(heads)}|", f"|{'---|' * len(heads)}"]
    for label, row in found["rows"].items():
        val, test = (_array(row[score]) for score in SCORES)
        spread = 100 * test.std(ddof=1)
        cells = (label, f"{100 * val.mean():.1f}", f"{100 * test.mean():.1f} ± {spread:.1f}")
        lines.append(f"|{'|'.join(cells)}|{row['seconds']:.0f}|")
    return "\n".join([*lines, ""])


def _array(numbers: Sequence[float]) -> NDArray[np.float64]:
    return np.asarray(numbers, np.float64)
