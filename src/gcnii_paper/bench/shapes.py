"""What a case is measured on: a graph of the catalog, or the shape of one that is drawn."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Named:
    """A graph of the catalog; without its files, a random one of the same size is drawn."""

    name: str
    parameters: tuple[tuple[str, float], ...] = ()  # of a generator


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A random graph: n nodes with d features in k classes.

    entries  of A: two per edge
    hub      neighbours of the best connected node, from where degrees fall by a power law; 0: all
             pairs are equally likely
    density  share of X that is not zero; below 1, X is sparse
    """

    n: int
    entries: int
    d: int
    k: int
    hub: int = 0
    density: float = 1.0

    def scaled(self, share: float) -> Shape:
        """A graph like it with this share of the nodes and links."""
        n, entries, hub = (round(share * number) for number in (self.n, self.entries, self.hub))
        return replace(self, n=n, entries=entries, hub=hub)
