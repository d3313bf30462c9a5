"""Which classes are taken for which: a table of few classes, a heat map and a list of many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

from gcnii.analysis.report.one_file import short
from gcnii.files import visible
from gcnii.inference.evaluation import Evaluation

SQUARE = 12  # classes of the largest matrix that is a table of numbers
MOST = 100  # classes of the largest heat map
LISTED = 10  # of the most frequent confusions
LEVELS = 9  # of shade
FAINTEST = 0.35  # shade of a square: a single confusion is to be seen
STEP = 10  # the side of a square of the heat map


@dataclass(frozen=True, eq=False)
class Confusions:
    """A confusion matrix: rows are true classes, columns predicted ones."""

    names: Sequence[str]
    C: NDArray[np.int64]

    @classmethod
    def of(cls, evaluation: Evaluation) -> Confusions | None:
        """None where a node can have several labels."""
        names = [row["name"] for row in evaluation.classes]
        return cls(names, np.array(evaluation.confusion)) if evaluation.confusion else None

    @property
    def rows(self) -> list[tuple[str, list[tuple[int, str]]]]:
        """Each true class with its counts and their shades; empty of many classes."""
        if len(self.names) > SQUARE:
            return []
        pairs = enumerate(zip(self.names, self.C, strict=True))
        return [(name, [self._cell(i, j) for j in range(len(row))]) for i, (name, row) in pairs]

    def _cell(self, i: int, j: int) -> tuple[int, str]:
        kind = "hit" if i == j else "miss"
        return int(self.C[i, j]), f"{kind}-{ceil(LEVELS * self._share(i, j))}"

    def _share(self, i: int, j: int) -> float:
        """Of the nodes of class i, how many are taken for j."""
        return float(self.C[i, j] / max(self.C[i].sum(), 1))

    @property
    def frequent(self) -> list[tuple[str, str, int, int]]:
        """True class, what it is taken for, how often, of how many: the most frequent ones."""
        wrong = self.C - np.diag(self.C.diagonal())
        order = np.argsort(-wrong, axis=None, kind="stable")[:LISTED]
        places = [divmod(int(place), len(self.C)) for place in order]
        return [
            (self.names[i], self.names[j], int(wrong[i, j]), int(self.C[i].sum()))
            for i, j in places
            if wrong[i, j]
        ]

    @property
    def heat_map(self) -> Markup | None:
        """The matrix as squares, whose titles say what they are; None of few or too many."""
        k = len(self.names)
        if not SQUARE < k <= MOST:
            return None
        squares = "".join(self._square(int(i), int(j)) for i, j in np.argwhere(self.C))
        size, label = k * STEP, f"Confusion matrix of {k} classes"
        return Markup(
            f'<svg class="heat" viewBox="-1 -1 {size + 2} {size + 2}" role="img" '
            f'aria-label="{label}"><rect class="ground" width="{size}" height="{size}"/>'
            f"{squares}</svg>"
        )

    def _square(self, i: int, j: int) -> str:
        kind = "hit" if i == j else "miss"
        true, taken = (escape(visible(short(self.names[at]))) for at in (i, j))
        title = f"true {true}, predicted {taken}: {self.C[i, j]} of {self.C[i].sum()}"
        shade = max(self._share(i, j), FAINTEST)
        place = f'x="{j * STEP}" y="{i * STEP}" width="{STEP}" height="{STEP}"'
        return (
            f'<rect class="{kind}" {place} fill-opacity="{shade:.2f}"><title>{title}</title></rect>'
        )
