"""The graph of rows without a graph: each is joined to its nearest neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from gcnii.errors import InputError
from gcnii.graph import Features, Graph
from gcnii.train.plan import Plan


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Finds the nearest training rows of a row, by distances in X as given.

    The nodes' features are standardised, so that a network can be trained on columns of any scale.
    """

    search: NearestNeighbors
    scaler: StandardScaler

    @classmethod
    def of(cls, X: Features, neighbours: int) -> Neighbours:
        """This number of neighbours for each row of X, or all others where there are fewer."""
        search = NearestNeighbors(n_neighbors=min(neighbours, X.shape[0] - 1)).fit(X)
        return cls(search, StandardScaler(with_mean=not sp.issparse(X)).fit(X))

    def graph(self, X: Features) -> Graph:
        """The training rows, each joined to its nearest others."""
        edges = _edges(self.search.kneighbors(return_distance=False), first=0)
        return Graph(X=self.scaler.transform(X), edges=edges, name="nearest neighbours")

    def joined(self, graph: Graph, X: Features) -> Graph:
        """The training graph with new rows at its end, which gather from their nearest old rows.

        No old row gathers from a new one, and no new row from another: what is computed for a row
        does not depend on the rows that are asked about together.
        """
        new = self.scaler.transform(X)
        both = np.concatenate([graph.edges, graph.edges[::-1]], axis=1)
        links = _edges(self.search.kneighbors(X, return_distance=False), first=graph.n)
        stack = sp.vstack if sp.issparse(new) else np.concatenate
        return Graph(
            X=stack([graph.X, new]),
            edges=np.concatenate([both, links], axis=1),
            directed=True,
            name=graph.name,
        )


def _edges(nearest: NDArray[np.int64], first: int) -> NDArray[np.int64]:
    """(2, m) from row `first` + i to each of nearest[i]."""
    sources = np.repeat(first + np.arange(len(nearest)), nearest.shape[1])
    return np.stack([sources, nearest.ravel()])


def refuse_unjoinable(plan: Plan) -> None:
    """Refuse settings with which new rows would change what is computed for others."""
    needed = {"geometry": "none", "diffusion": "none", "direction": "out", "batch_norm": False}
    for name, value in needed.items():
        found = plan.settings.get(name, value)
        if found != value:
            raise InputError(
                f"without a graph, {name} must be {value}, because new rows are joined to the "
                f"training rows one by one; got {found} for {plan.model}"
            )
