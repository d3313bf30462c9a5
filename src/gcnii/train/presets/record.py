"""Record settings: for a data set, the best that our own searches have found, by validation alone.

They are winners of `gcnii tune`, not published ones; `gcnii reproduce beyond` measures them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from gcnii.errors import InputError
from gcnii.files import Document, Only, read_document
from gcnii.train.presets.settings import Settings

FILE = Path(__file__).with_name("record.json")  # made by `gcnii reproduce adopt-record`
SHAPE = {str: Only({"model": str, "settings": dict, "tried": int, "val": float})}


@dataclass(frozen=True)
class Record:
    """The choice of our searches on a data set.

    settings  that differ from the defaults of the model and of Recipe; nothing published is below
    tried     the number of settings that it was chosen from
    val       its mean validation score
    """

    model: str
    settings: Settings
    tried: int
    val: float

    def document(self) -> Document:
        """As record.json has it."""
        return asdict(self) | {"settings": dict(sorted(self.settings.items()))}


def records(file: Path | None = None) -> dict[str, Record]:
    """data set → its record, of those that have one; `file` is FILE unless given."""
    file = file or FILE
    held: Document = read_document(file, SHAPE, "file of record settings", dict)
    return {name: Record(**record) for name, record in held.items()}


def record_of(name: str, graph: str = "") -> Record:
    """The record of a data set of the catalog; InputError, naming the graph, if there is none."""
    held = records()
    if name not in held:
        known = f"there are some for {', '.join(held)}" if held else "no data set has any yet"
        raise InputError(
            f"{graph or name} has no record settings; {known}; leave the preset out, or search "
            "with `gcnii tune`"
        )
    return held[name]
