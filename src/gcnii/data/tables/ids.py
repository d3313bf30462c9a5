"""Ids: the nodes' names and the numbers of their rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gcnii.columns.table import Texts


class Ids:
    """Finds the row of a node by its name."""

    def __init__(self, texts: Texts):
        self.texts = texts
        self.place: dict[str, int] = {}
        for i, text in enumerate(texts):
            self.place.setdefault(text, i)

    def repeated(self) -> list[tuple[int, int]]:
        """Each row whose name stands in an earlier row, and that row."""
        rows = ((i, self.place[t]) for i, t in enumerate(self.texts) if t is not None)
        return [(i, first) for i, first in rows if i != first]

    def rows_of(self, texts: Texts) -> NDArray[np.int64]:
        """The rows of these nodes, -1 where there is none of that name."""
        return np.array([-1 if t is None else self.place.get(t, -1) for t in texts], np.int64)
