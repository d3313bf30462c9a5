"""Initial values of weights."""

import torch
from torch import nn


def uniform(*shape: int) -> nn.Parameter:
    """A weight of this shape, each entry uniform in ±1/√width; the width is the last dimension."""
    bound = shape[-1] ** -0.5
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound))


def glorot(d: int, width: int) -> nn.Parameter:
    """W (d, width), each entry uniform in ±√(6 / (d + width))."""
    return nn.Parameter(nn.init.xavier_uniform_(torch.empty(d, width)))


def glorot_dense(d: int, width: int, *, bias: bool = True) -> nn.Linear:
    """A dense layer with a Glorot-uniform weight and a bias, if any, of zero."""
    layer = nn.Linear(d, width, bias=bias)
    nn.init.xavier_uniform_(layer.weight)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer
