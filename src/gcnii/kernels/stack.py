"""All layers of GCNII on a GPU, forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import overload

import torch
from torch import Tensor

from gcnii.kernels import gather, schedule, slots
from gcnii.kernels.layer import backward_layer, forward_layer, initial_gradient
from gcnii.kernels.layouts import CSR, schedule_of, slots_of
from gcnii.kernels.mask import drop, finish_layer, open_where
from gcnii.kernels.products import gradients

Order = slots.Slots | schedule.Schedule
Matrix = slots.SlottedMatrix | schedule.ScheduledMatrix

Step = Callable[..., None]  # a layer, as `forward_layer` is called

# Up to this width a layer is one kernel; wider matrices are multiplied faster on their own.
NARROW = 128


def order(pattern: CSR, H: Tensor) -> Order:
    """The layout of a sparse matrix for the layers on H (r, n, h)."""
    fused = slots_of(pattern, *cut(H)) if H.shape[2] <= NARROW else None
    return fused or schedule_of(pattern, *gather.cut(H))


def cut(H: Tensor) -> tuple[int, int]:
    """For H (r, n, h), a block's slots and the longest row in one slot: the fastest measured."""
    replicas, n, _ = H.shape
    return (16, 8) if replicas * n < gather.BUSY else (32, 16)


def forward(
    P: Matrix, H: Tensor, H0: Tensor, M1: Tensor, M2: Tensor | None, keys: Tensor | None,
    *, alpha: float, skip: float, kept: Tensor, saves: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    """H_L (r, n, h); if `saves`, also the layers' outputs D and sums S, both (r, layers, n, h).

    H, H0 (r, n, h); M1, M2 (layers, r, h, h); keys (layers, r, 2).  D's last matrix is left empty,
    as room for backward.
    """
    layers, (replicas, n, width) = len(M1), H.shape
    H0, M1, M2 = H0.contiguous(), _like(H, M1), _like(H, M2)
    D = H.contiguous() if keys is None else drop(H, keys[0], kept)
    rooms = layers if saves else 2  # without backward, two matrices take turns
    outputs = H.new_empty(replicas, rooms, n, width)
    sums = H.new_empty(replicas, layers, n, width) if saves else None
    last = torch.empty_like(D)
    step: Step = forward_layer if isinstance(P, slots.SlottedMatrix) else _wide_layer
    for l in range(layers):
        key = keys[l + 1] if keys is not None and l + 1 < layers else None
        out = outputs[:, l % rooms] if l + 1 < layers else last
        S, m2 = None if sums is None else sums[:, l], None if M2 is None else M2[l]
        # Back and forth: a layer begins with the replicas that the one before left in the cache.
        step(P, D, H0, M1[l], m2, key, out, S, alpha=alpha, skip=skip, kept=kept, back=l % 2 == 1)
        D = out
    return (last,) if sums is None else (last, outputs, sums)


def _wide_layer(
    P: schedule.ScheduledMatrix, D: Tensor, H0: Tensor, M1: Tensor, M2: Tensor | None,
    keys: Tensor | None, out: Tensor, S: Tensor | None,
    *, alpha: float, skip: float, kept: Tensor, back: bool,
) -> None:  # fmt: skip
    """What `forward_layer` computes, in one kernel for each step; `back` makes no difference."""
    S = gather.gather(P, D, H0 if alpha else None, alpha, S)
    Z = S @ M1 if M2 is None else (S @ M1).add_(H0 @ M2)
    finish_layer(Z, D if skip else None, skip, keys, kept, out)


def backward(
    PT: Matrix, G: Tensor, H: Tensor, D: Tensor, S: Tensor, H0: Tensor,
    M1: Tensor, M2: Tensor | None, keys: Tensor | None, *, alpha: float, skip: float, kept: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:  # fmt: skip
    """The gradients of the first H, H0, M1 and M2; PT is Pᵀ, and G the gradient of the last H.

    D is overwritten: the gradient of a layer's product takes the place of the output whose sign it
    needed.
    """
    dH, W1, W2 = torch.empty_like(H), _like(H, M1), _like(H, M2)
    open_where(G.contiguous(), H, D[:, -1])
    if isinstance(PT, slots.SlottedMatrix):
        dH0 = _fused_gradients(PT, D, W1, W2, dH, alpha, skip)
    else:
        dH0 = _wide_gradients(PT, D, W1, W2, dH, alpha, skip)
    dM1 = gradients(S.flatten(0, 1), D.flatten(0, 1)).unflatten(0, S.shape[:2])
    dM1 = dM1.transpose(0, 1).to(M1.dtype)
    dM2 = None if M2 is None else _initial_gradients(H0, D).to(M2.dtype)
    return dH if keys is None else drop(dH, keys[0], kept, out=dH), dH0, dM1, dM2


def _fused_gradients(
    PT: slots.SlottedMatrix, D: Tensor, M1: Tensor, M2: Tensor | None, dH: Tensor,
    alpha: float, skip: float,
) -> Tensor:  # fmt: skip
    """Overwrite D with the layers' dZ, fill dH, and return dH0, summed up at the end."""
    for l in range(len(M1) - 1, -1, -1):
        below = D[:, l - 1] if l else None
        out = dH if below is None else below
        backward_layer(PT, D[:, l], M1[l], below, out, skip=skip, back=l % 2 == 1)
    return initial_gradient(D, M1, alpha) if M2 is None else initial_gradient(D, M2, 1.0)


def _wide_gradients(
    PT: schedule.ScheduledMatrix, D: Tensor, M1: Tensor, M2: Tensor | None, dH: Tensor,
    alpha: float, skip: float,
) -> Tensor:  # fmt: skip
    """The same in one kernel for each step; dH0 is summed up on the way."""
    dH0 = torch.zeros_like(dH)
    for l in range(len(M1) - 1, -1, -1):
        dZ, below = D[:, l], D[:, l - 1] if l else None
        dS = dZ @ M1[l].mT
        dH0.add_(dS, alpha=alpha) if M2 is None else dH0.add_(dZ @ M2[l].mT)
        gather.gather(PT, dS, dZ if skip else None, skip, dH if below is None else below, below)
    return dH0


@overload
def _like(H: Tensor, M: Tensor) -> Tensor: ...
@overload
def _like(H: Tensor, M: None) -> None: ...
def _like(H: Tensor, M: Tensor | None) -> Tensor | None:
    """M in the precision of H, which may be 16 bits."""
    return None if M is None else M.to(H.dtype)


def _initial_gradients(H0: Tensor, dZ: Tensor) -> Tensor:
    """H0ᵀ dZ_l (layers, r, h, h) for H0 (r, n, h) and dZ (r, layers, n, h).

    In batches over whichever are more, the layers or the replicas.
    """
    replicas, layers = dZ.shape[:2]
    if replicas < layers:
        return torch.stack([gradients(H.expand_as(G), G) for H, G in zip(H0, dZ, strict=True)], 1)
    return torch.stack([gradients(H0, dZ[:, l]) for l in range(layers)])
