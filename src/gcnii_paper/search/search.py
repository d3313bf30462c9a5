"""A search for settings that nobody published: what is tried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import prod

from gcnii.files import Document
from gcnii.train.presets import Settings


@dataclass(frozen=True)
class Search:
    """A model on a graph, its `fixed` settings, and axes: each try takes one point of each axis.

    The first try is `fixed` alone, over the preset.  The name seeds what is proposed next.
    """

    name: str
    graph: str
    model: str
    fixed: Settings
    axes: tuple[tuple[Settings, ...], ...]

    def at(self, places: Mapping[str, int]) -> Settings:
        """The settings of a try; axis → the place of its point."""
        points = (axis[places[name]] for name, axis in self.named_axes.items())
        return self.fixed | {name: value for point in points for name, value in point.items()}

    def places(self, settings: Settings) -> dict[str, int]:
        """`at` backwards; empty for `fixed` alone."""
        found = {
            name: place
            for name, axis in self.named_axes.items()
            for place, point in enumerate(axis)
            if point.items() <= settings.items()
        }
        return found if len(found) == len(self.axes) else {}

    @property
    def named_axes(self) -> dict[str, tuple[Settings, ...]]:
        """The axes by the settings that their points have."""
        return {"+".join(axis[0]): axis for axis in self.axes}

    @property
    def size(self) -> int:
        """The number of different tries."""
        return 1 + prod(map(len, self.axes))

    @property
    def about(self) -> Document:
        """What its document says of it; a document that says otherwise is another search's."""
        space = asdict(self)
        return {"search": space.pop("name"), **space}

    @property
    def file(self) -> str:
        """The name of its document."""
        return f"{self.name.replace('/', '-')}.json"
