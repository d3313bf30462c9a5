"""How weights start."""

import torch
from torch import nn


def uniform(*shape: int) -> nn.Parameter:
    """A weight of this shape, each entry uniform in ±1/√width, where the width is its last
    dimension.
    """
    bound = shape[-1] ** -0.5
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound))


def glorot(d: int, width: int) -> nn.Parameter:
    """W (d, width), each entry uniform in ±√(6 / (d + width))."""
    return nn.Parameter(nn.init.xavier_uniform_(torch.empty(d, width)))


def glorot_dense(d: int, width: int, *, bias: bool = True) -> nn.Linear:
    """A dense layer whose weight is Glorot's and whose bias, if it has one, is zero."""
    layer = nn.Linear(d, width, bias=bias)
    nn.init.xavier_uniform_(layer.weight)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer
