"""All layers of GCNII on a GPU, forward and backward."""

from __future__ import annotations

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

# widths up to this run a layer in one kernel; wider matrices are multiplied faster on their own
NARROW = 128


def order(pattern: CSR, H: Tensor) -> Order:
    """How the layers on H (r, n, h) go through a sparse matrix, by its Pattern."""
    fused = slots_of(pattern, *cut(H)) if H.shape[2] <= NARROW else None
    return fused or schedule_of(pattern, *gather.cut(H))


def cut(H: Tensor) -> tuple[int, int]:
    """For H (r, n, h), the slots in a block and the longest row that takes one: the fastest
    measured.
    """
    replicas, n, _ = H.shape
    return (16, 8) if replicas * n < gather.BUSY else (32, 16)


def forward(
    P: Matrix, H: Tensor, H0: Tensor, M1: Tensor, M2: Tensor | None, keys: Tensor | None,
    *, alpha: float, skip: float, kept: int, saves: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    """H_L (r, n, h); and where backward will come, the layers' outputs D and sums S, both (r,
    layers, n, h).

    H, H0 (r, n, h); M1, M2 (layers, r, h, h); keys (layers, r, 2).  D's last matrix is room for
    backward, and empty.
    """
    layers, (replicas, n, width) = len(M1), H.shape
    H0, M1, M2 = H0.contiguous(), _like(H, M1), _like(H, M2)
    D = H.contiguous() if keys is None else drop(H, keys[0], kept)
    rooms = layers if saves else 2  # without backward, two matrices take turns
    outputs = H.new_empty(replicas, rooms, n, width)
    sums = H.new_empty(replicas, layers, n, width) if saves else None
    last = torch.empty_like(D)
    for l in range(layers):
        key = keys[l + 1] if keys is not None and l + 1 < layers else None
        S, out = (
            None if sums is None else sums[:, l],
            outputs[:, l % rooms] if l + 1 < layers else last,
        )
        m2 = None if M2 is None else M2[l]
        if isinstance(P, slots.SlottedMatrix):
            # Back and forth: a layer begins with the replicas that the one before it has left in
            # the cache.
            forward_layer(
                P, D, H0, M1[l], m2, key, out, S, alpha=alpha, skip=skip, kept=kept, back=l % 2 == 1
            )
        else:
            S = gather.gather(P, D, H0 if alpha else None, alpha, S)
            Z = S @ M1[l] if m2 is None else (S @ M1[l]).add_(H0 @ m2)
            finish_layer(Z, D if skip else None, skip, key, kept, out)
        D = out
    return (last,) if sums is None else (last, outputs, sums)


def backward(
    PT: Matrix, G: Tensor, H: Tensor, D: Tensor, S: Tensor, H0: Tensor, M1: Tensor, M2: Tensor | None,
    keys: Tensor | None, *, alpha: float, skip: float, kept: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:  # fmt: skip
    """The gradients of the first H, H0, M1 and M2; PT is P's transpose, and G the gradient of the
    last H.

    D is overwritten: the gradient of a layer's product takes the place of the output whose sign it
    needed.
    """
    layers, fused, W1, W2 = len(M1), isinstance(PT, slots.SlottedMatrix), _like(H, M1), _like(H, M2)
    # fused: summed up at the end
    dH, dH0 = torch.empty_like(H), torch.zeros_like(H[:, :0] if fused else H)
    open_where(G.contiguous(), H, D[:, -1])
    for l in range(layers - 1, -1, -1):
        dZ, below, out = D[:, l], D[:, l - 1] if l else None, D[:, l - 1] if l else dH
        if isinstance(PT, slots.SlottedMatrix):
            backward_layer(PT, dZ, W1[l], below, out, skip=skip, back=l % 2 == 1)
        else:
            dS = dZ @ W1[l].mT
            dH0.add_(dS, alpha=alpha) if W2 is None else dH0.add_(dZ @ W2[l].mT)
            gather.gather(PT, dS, dZ if skip else None, skip, out, below)
    if fused:
        dH0 = initial_gradient(D, W1, alpha) if W2 is None else initial_gradient(D, W2, 1.0)
    dM1 = (
        gradients(S.flatten(0, 1), D.flatten(0, 1))
        .unflatten(0, S.shape[:2])
        .transpose(0, 1)
        .to(M1.dtype)
    )
    dM2 = None if M2 is None else _initial_gradients(H0, D).to(M2.dtype)
    return dH if keys is None else drop(dH, keys[0], kept, out=dH), dH0, dM1, dM2


@overload
def _like(H: Tensor, M: Tensor) -> Tensor: ...
@overload
def _like(H: Tensor, M: None) -> None: ...
def _like(H: Tensor, M: Tensor | None) -> Tensor | None:
    """Multiplied as what is stored is: in 16 bits where H has them."""
    return None if M is None else M.to(H.dtype)


def _initial_gradients(H0: Tensor, dZ: Tensor) -> Tensor:
    """H0ᵀ dZ_l (layers, r, h, h) for H0 (r, n, h) and dZ (r, layers, n, h); all replicas or all
    layers at once.
    """
    replicas, layers = dZ.shape[:2]
    if replicas < layers:
        return torch.stack([gradients(H.expand_as(G), G) for H, G in zip(H0, dZ, strict=True)], 1)
    return torch.stack([gradients(H0, dZ[:, l]) for l in range(layers)])
