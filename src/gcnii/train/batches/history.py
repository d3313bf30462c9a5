"""VR-GCN's control variate (Chen, Zhu & Song 2018): old activations stand in for neighbours."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from gcnii.propagation import Sparse


class ActivationHistory:
    """h̄: for each layer, what was last gathered of every node (n, width); zero at first.

    What a step brings is noted, and stored when the step is over, so that h̄ does not change within
    a step.
    """

    def __init__(self, n: int):
        self.n = n
        self.tables: dict[int, Tensor] = {}
        self._noted: dict[int, tuple[Tensor, Tensor]] = {}

    def recall(self, layer: int, like: Tensor) -> Tensor:
        """h̄ of this layer, as wide as what is gathered."""
        if layer not in self.tables:
            self.tables[layer] = like.new_zeros(self.n, like.shape[1])
        return self.tables[layer]

    def note(self, layer: int, nodes: Tensor, H: Tensor) -> None:
        """Note H, what the layer gathers of these nodes in this step."""
        self._noted[layer] = (nodes, H.detach())

    def settle(self) -> None:
        """Store what was noted."""
        for layer, (nodes, H) in self._noted.items():
            self.tables[layer][nodes] = H
        self._noted.clear()


@dataclass(frozen=True, eq=False, repr=False)
class HistoryHop(Sparse):
    """P̂: sampled links of some rows of P, scaled up by R = neighbours / sampled, to estimate P H.

    noise   the same links, scaled up by √R
    exact   the rows of P, over all nodes of the graph
    nodes   (columns,) which nodes the columns are
    """

    noise: Sparse
    exact: Sparse
    nodes: Tensor
    history: ActivationHistory
    layer: int

    def gather(self, H: Tensor, mean: Tensor | None = None) -> Tensor:
        """P̂ (μ - h̄) + P h̄ + P̂_√ (H - μ), whose mean over all samples is P H for any h̄.

        mean  μ, what H is without dropout; by default H itself, and the last term is zero

        The noise of dropout is independent between nodes, so √R gives a sum over few of them the
        variance of the sum over all.
        """
        M = H if mean is None else mean
        past = self.history.recall(self.layer, M)
        self.history.note(self.layer, self.nodes, M)
        smooth = self @ (M - past[self.nodes]) + self.exact @ past
        return smooth if mean is None else smooth + self.noise @ (H - mean)
