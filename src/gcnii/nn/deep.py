"""The network around the convolutions, the same for every deep model of the paper (section 3 and the authors' code)."""

from collections.abc import Iterable
from typing import Annotated

from torch import Tensor, nn
from torch.nn.functional import relu

from gcnii.dropout import Dropout
from gcnii.nn.model import Model
from gcnii.propagation import Sparse

Layers = Annotated[int, "number of convolutions; the two dense layers are not counted"]
Width = Annotated[int, "number of hidden units"]


class Deep(Model):
    """X (n, d) → H0 → one ReLU(conv(P̃, H, H0)) after the other → scores (n, k).

    A convolution takes the dropped-out H and the H0 that was not dropped.  `convs` and `dense` are the paper's two
    groups of weight decay, L2_c and L2_d.
    """

    def __init__(self, d: int, k: int, convs: Iterable[nn.Module], width: int, dropout: float):
        super().__init__()
        self.dense = nn.ModuleDict({"encode": nn.Linear(d, width), "decode": nn.Linear(width, k)})
        self.convs = nn.ModuleList(convs)
        self.drop = Dropout(dropout)

    def embed(self, P: Sparse, X: Tensor | Sparse) -> Tensor:
        """The last hidden layer (n, width), from which the scores are read."""
        H = H0 = relu(self.dense["encode"](self.drop(X)))
        for conv in self.convs:
            H = conv(P, self.drop(H), H0).relu_()
        return H

    def forward(self, P: Sparse, X: Tensor | Sparse) -> Tensor:
        """Scores (n, k): logits, never probabilities."""
        scores: Tensor = self.dense["decode"](self.drop(self.embed(P, X)))
        return scores
