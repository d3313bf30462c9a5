"""Layers without gradients, a block of rows at a time: beside H0 and H, memory for the next H.

The numbers are those of the layers at once: a row's sums have the same terms in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from gcnii.nn.engine.fused import Form, Mappings, finished_layer
from gcnii.propagation import Sparse, block_height, row_blocks
from gcnii.propagation.product import multiply_each

# The number of a layer, a block of P's rows and where they are, H and H0 → the block of the next H.
Layer = Callable[[int, Sparse, slice, Tensor, Tensor], Tensor]


def layers_by_rows(
    convs: Sequence[nn.Module], mappings: Mappings | None, P: Sparse, H: Tensor, H0: Tensor
) -> Tensor:
    """H (n, h) → H_L; neither H nor H0 is changed, and nothing is dropped.

    mappings  of layers that `fused_layers` would run, whose sums have another order
    """
    layer = _plain(convs) if mappings is None else _fused(mappings)
    given, spare, height = H, None, block_height(*H.shape)
    for l in range(len(convs)):
        out = torch.empty_like(H) if spare is None else spare
        for rows, part in row_blocks(P, height):
            out[rows] = layer(l, part, rows, H, H0)
        spare, H = (None if H is given else H), out
    return H


class Gathering:
    """Some rows of P̃ that gather from the whole H, whatever rows of it a layer has at hand."""

    def __init__(self, P: Sparse, H: Tensor):
        self.P, self.H = P, H

    def __matmul__(self, at_hand: Tensor) -> Tensor:
        return self.P @ self.H


def _plain(convs: Sequence[nn.Module]) -> Layer:
    """Layers one by one: a convolution takes H only to gather from it, and its own rows of it."""

    def layer(l: int, P: Sparse, rows: slice, H: Tensor, H0: Tensor) -> Tensor:
        Z: Tensor = convs[l](Gathering(P, H), H[rows], H0[rows])
        return Z.relu_()

    return layer


def _fused(mappings: Mappings) -> Layer:
    """What `fused_layers` computes where nothing is dropped."""
    alpha = mappings.alpha
    assert not isinstance(alpha, Tensor)

    def layer(l: int, P: Sparse, rows: slice, H: Tensor, H0: Tensor) -> Tensor:
        form = Form(P.pattern, alpha, float(mappings.skip), 0, saves=False)
        M2 = None if mappings.M2 is None else mappings.M2[l : l + 1]
        S = multiply_each(P.pattern, P.values[None] * (1 - alpha), H[None])
        M1 = mappings.M1[l : l + 1]
        return finished_layer(S, H[rows][None], H0[rows][None], M1, M2, form)[0]

    return layer
