"""The network around the convolutions, the same for all deep models of the paper (section 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, Self

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import relu

from gcnii import kernels
from gcnii.dropout import Dropout, current_keys, keyed, next_key
from gcnii.memory import segment_length
from gcnii.nn.engine.fused import Mappings, fused_layers, fused_rows
from gcnii.nn.engine.recompute import recompute
from gcnii.nn.model import Gathering, Model
from gcnii.propagation import Sparse
from gcnii.propagation.by_rows import block_height, row_blocks


class Conv(Gathering):
    """A convolution of the skeleton before σ: a function of P̃ H, H and H0."""

    # Whether `fused_layers` can run it, by its `mappings`; each class says it for itself, because
    # one that is derived has another equation.
    fusable: ClassVar[bool] = False
    skip: ClassVar[bool] = False  # whether it adds H

    def forward(self, P: Sparse, H: Tensor, H0: Tensor) -> Tensor:
        """(n, width) → (n, width)."""
        return self.combine(self.over(P) @ H, H, H0)

    def combine(self, PH: Tensor, H: Tensor, H0: Tensor) -> Tensor:
        """The same where P̃ H is at hand."""
        raise NotImplementedError

    @classmethod
    def mappings(cls, convs: Sequence[Self]) -> Mappings:
        """The matrices of these layers."""
        raise NotImplementedError


class GCNIISkeleton(Model):
    """X (n, d) → H0 → one ReLU(conv(P̃, H, H0)) after the other → scores (n, k).

    As in the authors' code, a convolution takes H after dropout and H0 before it.  `convs` and
    `dense` are the paper's two groups of weight decay, L2_c and L2_d.
    """

    can_recompute = can_be_cut = uses_types = True

    def __init__(
        self,
        d: int,
        k: int,
        convs: Iterable[Conv],
        width: int,
        dropout: float,
    ):
        super().__init__()
        self.dense = nn.ModuleDict({"encode": nn.Linear(d, width), "decode": nn.Linear(width, k)})
        self.convs = Convs(convs)
        self.drop = Dropout(dropout)

    def embed(self, P: Sparse, X: Tensor | Sparse) -> Tensor:
        """The last hidden layer (n, width), from which the scores are read."""
        H0 = relu(self.dense["encode"](self.drop(X)))
        return self.layers_after(P, H0)

    def layers_after(self, P: Sparse, H0: Tensor) -> Tensor:
        """H_L, from H0."""
        H, layers = H0, len(self.convs)
        for start in range(0, layers, length := self._segment()):
            part = self.convs[start : start + length]
            assert isinstance(part, Convs)
            H = self.pass_through(part, P, H, H0)
        return H

    def _segment(self) -> int:
        """How many layers at a time: all, or those that are computed again together."""
        layers = len(self.convs)
        offloads = self.stash is not None
        return segment_length(layers, offloads=offloads) if self._recomputing else max(layers, 1)

    @property
    def _recomputing(self) -> bool:
        return self.recomputes and torch.is_grad_enabled()

    def pass_through(self, part: Convs, P: Sparse, H: Tensor, H0: Tensor) -> Tensor:
        """H after these convolutions; their activations are kept, or computed again in backward."""
        if self.by_rows and not torch.is_grad_enabled() and not self.drop.active:
            return part.by_rows(P, H, H0)
        if not self._recomputing:
            return part(P, H, H0, self.drop)  # type: ignore[no-any-return]
        keys = current_keys()
        key, first = (keys.key, keys.used) if keys else (next_key(H.device), 0)
        segment = Segment(part, self.drop)
        named = dict(segment.named_parameters()) | dict(segment.named_buffers())
        run = _runner(segment, list(named), P, first)
        place = None
        if self.stash is not None:
            ends = part[len(part) - 1] is self.convs[len(self.convs) - 1]
            place = self.stash.place(first=H is H0, last=ends)
        H = recompute(run, H, *P.tensors, H0, key, *named.values(), place=place)
        if keys and self.drop.active:
            keys.used += len(part)
        return H

    def forward(self, P: Sparse, X: Tensor | Sparse) -> Tensor:
        """Scores (n, k): logits, never probabilities."""
        H, decode = self.drop(self.embed(P, X)), self.dense["decode"]
        # cuBLAS takes three times as long for few columns if it is to add the bias itself.
        narrow = kernels.usable(H)
        scores: Tensor = H @ decode.weight.T + decode.bias if narrow else decode(H)
        return scores


class Convs(nn.ModuleList):
    """One convolution after the other, each between a dropout and a ReLU."""

    def forward(self, P: Sparse, H: Tensor, H0: Tensor, drop: Dropout) -> Tensor:
        """H (n, width) → (n, width)."""
        exact = H.is_cuda and H.dtype == torch.float64  # the GPU kernels multiply float32
        mappings = None if exact else self.mappings(P)
        if mappings is not None:
            mixed = drop.active and isinstance(drop.kept, Tensor)
            if not mixed or (kernels.usable(H) and not mappings.skip):
                return fused_layers(P, H, H0, mappings, drop)
        for conv in self:
            H = conv(P, drop(H), H0).relu_()
        return H

    def by_rows(self, P: Sparse, H: Tensor, H0: Tensor) -> Tensor:
        """The same without gradients and dropout, a block of rows at a time.

        Beside H0 and H, which do not change, it takes memory for the next H.  The numbers are those
        of the layers at once: a row's sums have the same terms in the same order.
        """
        mappings, given, spare = self.mappings(P), H, None
        for l, conv in enumerate(self._convs):
            out = torch.empty_like(H) if spare is None else spare
            for rows, part in row_blocks(conv.over(P), block_height(*H.shape)):
                if mappings is None:
                    out[rows] = conv.combine(part @ H, H[rows], H0[rows]).relu_()
                else:
                    out[rows] = fused_rows(part, H, H[rows], H0[rows], mappings, l)
            spare, H = (None if H is given else H), out
        return H

    @property
    def _convs(self) -> list[Conv]:
        return list(self)  # type: ignore[arg-type]

    def mappings(self, P: Sparse) -> Mappings | None:
        """What `fused_layers` takes, if it can run these layers."""
        convs = self._convs
        # Where P is learned, the gradient of its values is left to autograd.
        learned = any(conv.type_weights is not None for conv in convs)
        if learned or P.values.requires_grad or not _alike(convs):
            return None
        return type(convs[0]).mappings(convs)


def _alike(convs: list[Conv]) -> bool:
    """Whether `fused_layers` can run them: all of one fusable class, without hooks."""
    kinds = {(type(conv), getattr(conv, "alpha", None)) for conv in convs}
    hooks = any(conv._forward_hooks or conv._forward_pre_hooks for conv in convs)
    return len(kinds) == 1 and not hooks and vars(type(convs[0])).get("fusable", False)


class Segment(nn.Module):
    """Layers that are computed again together: a module of all their weights and numbers."""

    def __init__(self, convs: Convs, drop: Dropout):
        super().__init__()
        self.convs, self.drop = convs, drop

    def forward(self, P: Sparse, H: Tensor, H0: Tensor) -> Tensor:
        """H (n, width) → (n, width)."""
        return self.convs(P, H, H0, self.drop)  # type: ignore[no-any-return]


def _runner(segment: Segment, names: Sequence[str], P: Sparse, first: int) -> Callable[..., Tensor]:
    """These layers as a function of tensors alone; `first` is the index of their first dropout."""
    held = len(P.tensors)

    def run(*tensors: Tensor) -> Tensor:
        H, (H0, key, *rest) = tensors[0], tensors[1 + held :]
        matrix, named = P.holding(tensors[1 : 1 + held]), dict(zip(names, rest, strict=True))
        with keyed(key, first, P.row_numbers):
            return functional_call(segment, named, (matrix, H, H0))  # type: ignore[no-any-return]

    return run
