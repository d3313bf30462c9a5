"""MLP: what the features give without the graph."""

from gcnii.nn.model import ModelCard
from gcnii.nn.settings import Rate, Width
from gcnii.nn.skeleton import GCNIISkeleton


class MLP(GCNIISkeleton):
    """MLP: the two dense layers of GCNII's skeleton, without convolutions between them."""

    card = ModelCard(
        paper="what the features alone give",
        equation="σ(X W + b) W' + b'",
        uses_graph=False,
        when="to see what the features give without the graph",
    )

    def __init__(self, d: int, k: int, *, width: Width = 64, dropout: Rate = 0.6):
        super().__init__(d, k, (), width, dropout)
