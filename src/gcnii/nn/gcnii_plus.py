"""GCNII+: GCNII with options, for graphs whose links do not join alike nodes.

    H0  = σ(norm(P̃ X W0 + b))              or without P̃
    H_l = σ(norm(conv_l(P̃, H, H0) + H W))  or without H W; conv_l is GCNII's, equation 5
    scores from H_L, or from X ‖ H_L

With all options off it is GCNII, to the last bit.  docs/evidence/beyond.md has what each option
gains.
"""

from __future__ import annotations

from typing import Annotated, Literal

from torch import Tensor, nn
from torch.nn.functional import linear, relu

from gcnii.dropout import Dropout, current_keys
from gcnii.nn.engine.skeleton import GCNIISkeleton
from gcnii.nn.gcnii import GCNIIConv, betas
from gcnii.nn.model import Gathering, ModelCard, uniform
from gcnii.nn.settings import Alpha, Bounds, Choice, Lam, Layers, Range, Rate, Setting, Width
from gcnii.propagation import Sparse

RowNorm = Literal["none", "layer"]
Head = Literal["last", "features"]

InputRate = Annotated[
    float,
    Setting(
        "share of entries of X set to zero while training",
        Bounds(least=0, below=1),
        search=Range(0.0, 0.8, 0.1),
    ),
]
ProductFirst = Annotated[
    bool, Setting("multiply by P̃ before the first nonlinearity, too", search=Choice((False, True)))
]
RowNorms = Annotated[
    RowNorm,
    Setting(
        "scale rows before every nonlinearity, by layer norm", search=Choice(("none", "layer"))
    ),
]
Heads = Annotated[
    Head,
    Setting(
        "what the scores are read from: the last layer, or X and the last layer",
        search=Choice(("last", "features")),
    ),
]
Residual = Annotated[
    bool, Setting("add H W to every convolution, with a W of its own", search=Choice((False, True)))
]


class PlusConv(GCNIIConv):
    """norm(equation 5 + H W_skip) before σ, where the norm and W_skip are optional."""

    def __init__(self, width: int, alpha: float, beta: float, row_norm: RowNorm, residual: bool):
        super().__init__(width, alpha, beta)
        self.W_skip = uniform(width, width) if residual else None
        self.norm = norm_of(row_norm, width)

    def combine(self, PH: Tensor, H: Tensor, H0: Tensor) -> Tensor:
        """(n, width) → (n, width)."""
        Z = super().combine(PH, H, H0)
        if self.W_skip is not None:
            Z = Z + H @ self.W_skip
        return self.norm(Z)  # type: ignore[no-any-return]


def norm_of(row_norm: RowNorm, width: int) -> nn.Module:
    """What scales rows (n, width)."""
    return nn.LayerNorm(width) if row_norm == "layer" else nn.Identity()


class GCNIIPlus(GCNIISkeleton):
    """GCNII with a product first, layer norm, a linear residual, and X in the head."""

    card = ModelCard(
        paper="Chen et al. 2020, with ideas of Maurya et al., Rossi et al. and Luo et al.",
        equation="H0 = σ(norm(P̃ X W0)), GCNII's layers with norm, scores of H_L or X ‖ H_L",
        when="linked nodes differ; `gcnii tune` chooses its options",
    )
    batched = frozenset({"alpha", "lam", "dropout", "input_dropout"})

    def __init__(
        self,
        d: int,
        k: int,
        *,
        layers: Layers = 8,
        width: Width = 64,
        alpha: Alpha = 0.1,
        lam: Lam = 0.5,
        dropout: Rate = 0.5,
        input_dropout: InputRate = 0.5,
        product_first: ProductFirst = False,
        row_norm: RowNorms = "none",
        head: Heads = "last",
        residual: Residual = False,
    ):
        plain = row_norm == "none" and not residual  # then the layers are fused, as GCNII's are
        convs = (
            GCNIIConv(width, alpha, beta)
            if plain
            else PlusConv(width, alpha, beta, row_norm, residual)
            for beta in betas(layers, lam)
        )
        super().__init__(d, k, convs, width, dropout)
        self.drop_input = Dropout(input_dropout)
        self.product_first, self.head = product_first, head
        if product_first:
            self.dense["product"] = Gathering()
        self.dense["norm"] = norm_of(row_norm, width)
        if head == "features":
            self.dense["features"] = nn.Linear(d, k, bias=False)

    def embed(self, P: Sparse, X: Tensor | Sparse) -> Tensor:
        """The last hidden layer (n, width)."""
        return self.layers_after(P, self._first(P, self.drop_input(X)))

    def _first(self, P: Sparse, X: Tensor | Sparse) -> Tensor:
        encode = self.dense["encode"]
        assert isinstance(encode, nn.Linear)
        if self.product_first:
            # P̃ (X W) and not (P̃ X) W: X has more columns than W, as a rule.
            product = self.dense["product"]
            assert isinstance(product, Gathering)
            Z = product.over(P) @ linear(X, encode.weight) + encode.bias  # type: ignore[arg-type]
        else:
            Z = encode(X)
        return relu(self.dense["norm"](Z))

    def forward(self, P: Sparse, X: Tensor | Sparse) -> Tensor:
        """Scores (n, k): logits, never probabilities."""
        scores = super().forward(P, X)
        if self.head == "features":
            # Beside replicas with dropout, a run without draws those masks, too: X's comes after.
            if self.training and not self.drop.active and (keys := current_keys()):
                keys.used += len(self.convs) + 1
            scores = scores + self.dense["features"](self.drop_input(X))
        return scores
