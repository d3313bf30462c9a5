"""The ids of a graph's nodes, and the rows that they name."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gcnii.columns.table import Texts
from gcnii.data.tables.rows import Names

if TYPE_CHECKING:
    import pandas as pd

SHORT = 8  # characters: such a text is looked up as an integer of 8 bytes, several times as fast


class Ids:
    """The ids of n nodes as text, None where one is missing: which row does an id name?

    An id that several rows have names the first of them.
    """

    def __init__(self, texts: Texts):
        self.texts = texts
        given = np.flatnonzero([text is not None for text in texts])
        self._are_short = _are_short(texts[given])
        index = self._keys(texts[given])
        repeats = index.duplicated()
        self._index = index[~repeats]
        self._repeats = given[repeats]
        self._rows = np.append(given[~repeats], -1)  # [-1], which is not found, is -1

    def __len__(self) -> int:
        return len(self.texts)

    def missing(self) -> list[int]:
        """The rows without an id."""
        return [i for i, text in enumerate(self.texts) if text is None]

    def repeated(self) -> list[tuple[int, int]]:
        """Each row whose id an earlier row has, and the first row that has it."""
        first = self.rows_of(self.texts[self._repeats])
        return list(zip(self._repeats.tolist(), first.tolist(), strict=True))

    def rows_of(self, names: Names) -> NDArray[np.int64]:
        """The row that each name stands for; -1 where it stands for none."""
        if names.dtype != object:
            return self._rows_of_numbers(np.asarray(names, np.int64))
        return self._rows_of_texts(np.asarray(names, object))

    def _rows_of_numbers(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        if self._numbers is None:
            return self._rows_of_texts(np.array(list(map(str, numbers.tolist())), object))
        found: NDArray[np.int64] = self._rows[self._numbers.get_indexer(numbers)]
        return found

    @cached_property
    def _numbers(self) -> pd.Index | None:
        """The ids as numbers, if all are whole numbers and written as Python writes them."""
        import pandas as pd

        texts = self.texts[self._rows[:-1]].tolist()
        try:
            numbers = np.array(list(map(int, texts)), np.int64)
        except (ValueError, OverflowError):
            return None
        return pd.Index(numbers) if list(map(str, numbers.tolist())) == texts else None

    def _rows_of_texts(self, texts: Texts) -> NDArray[np.int64]:
        if self._are_short and not _are_short(texts):
            short = np.array([_are_short(texts[i : i + 1]) for i in range(len(texts))], bool)
            rows = np.full(len(texts), -1, np.int64)  # where it is not short, it is no id
            rows[short] = self._rows_of_texts(texts[short])
            return rows
        found: NDArray[np.int64] = self._rows[self._index.get_indexer(self._keys(texts))]
        return found

    def _keys(self, texts: Texts) -> pd.Index:
        """What the ids are looked up by."""
        import pandas as pd

        keys = texts.astype(f"S{SHORT}").view(np.uint64) if self._are_short else texts
        return pd.Index(keys, dtype=keys.dtype)


def _are_short(texts: Texts) -> bool:
    """Whether all are short ASCII texts, so that padding them with NUL bytes keeps them apart."""
    cells = texts.tolist()
    if None in cells:
        return False
    together = "".join(cells)
    return max(map(len, cells), default=0) <= SHORT and together.isascii() and "\0" not in together
