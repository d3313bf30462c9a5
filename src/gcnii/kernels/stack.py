"""All layers of GCNII on a GPU, forward and backward."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, overload

import torch
from torch import Tensor

from gcnii.kernels import Beside, gather, gradients
from gcnii.kernels.layer import (
    INNER,
    backward_layer,
    forward_layer,
    initial_gradient,
    precision,
    weight_gradients,
)
from gcnii.kernels.layouts import (
    CSR,
    Cut,
    CutCSR,
    CutSlots,
    Schedule,
    ScheduledMatrix,
    Slots,
    SlottedMatrix,
    cut_slots_of,
    schedule_of,
    slots_of,
)
from gcnii.kernels.mask import drop, finish_layer, open_where
from gcnii.memory import BUSY, is_one_kernel

Order = Slots | Schedule
# Sends rows of H to other processes, and then waits for theirs, (r, arriving, h), contiguous.
Send = Callable[[Tensor], Callable[[], Tensor]]


class NarrowCut(NamedTuple):
    """A matrix whose rows several processes share, as CutSlots lays it out."""

    inner: SlottedMatrix
    border: ScheduledMatrix
    arriving: SlottedMatrix
    send: Send


class WideCut(NamedTuple):
    """The same for products alone: all rows, on near columns and on what arrives."""

    near: ScheduledMatrix
    arriving: ScheduledMatrix
    send: Send


Narrow = SlottedMatrix | NarrowCut
Wide = ScheduledMatrix | WideCut
Matrix = Narrow | Wide
Step = Callable[..., None]  # a layer, as `_wide_layer` is called
FEW = 6000  # rows over all replicas: programs of 16 rows each then take turns at most once
TOGETHER = 16  # layers whose weights' gradients are found at once, at most
LAST = 4  # of the first layers, which come last, so that little is left to wait for


def order(pattern: CSR, H: Tensor, *, back: bool = False) -> Order:
    """The layout of a sparse matrix for the layers on H (r, n, h), forward or `back`."""
    fused = slots_of(pattern, cut(H, back=back)) if _fuses(H) else None
    return fused or schedule_of(pattern, gather.cut(H))


def _fuses(H: Tensor) -> bool:
    """Whether a layer is one kernel."""
    replicas, n, width = H.shape
    return is_one_kernel(replicas * n, width, halves=H.dtype == torch.bfloat16)


def cut_order(pattern: CutCSR, H: Tensor) -> CutSlots | tuple[Schedule, Schedule]:
    """The same for a matrix whose rows several processes share: near columns, and what arrives."""
    fused = cut_slots_of(pattern, cut(H), gather.cut(H)) if _fuses(H) else None
    if fused is not None:
        return fused
    near, arriving = (schedule_of(p, gather.cut(H)) for p in (pattern.near, pattern.arriving))
    return near, arriving


def cut_matrix(pattern: CutCSR, near: Tensor, arriving: Tensor, send: Send, H: Tensor) -> Matrix:
    """Such a matrix, with the values of its two parts."""
    order = cut_order(pattern, H)
    if isinstance(order, CutSlots):
        own = order.inner.with_values(near), order.border.with_values(near)
        return NarrowCut(*own, order.arriving.with_values(arriving), send)
    return WideCut(order[0].with_values(near), order[1].with_values(arriving), send)


def cut(H: Tensor, *, back: bool = False) -> Cut:
    """For H (r, n, h), a block's slots and the longest row in one slot: the fastest measured."""
    rows = len(H) * H.shape[1]
    if rows >= BUSY:
        # Backward has registers left for 64 rows, which share what a product makes of M.
        tall = back and H.dtype == torch.float32 and H.shape[2] <= INNER and precision() == "tf32x3"
        return Cut(64 if tall else 32, 16, 4)
    return Cut(16, 8, 2) if rows < FEW else Cut(32, 8, 2)


def forward(
    P: Matrix, H: Tensor, H0: Tensor, M1: Tensor, M2: Tensor | None, keys: Tensor | None,
    *, alpha: float, skip: float, kept: Tensor, saves: bool, starts: Tensor | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """H_L (r, n, h); if `saves`, also the layers' outputs D and sums S, both (r, layers, n, h).

    H, H0 (r, n, h); M1, M2 (layers, r, h, h); keys (layers, r, 2).  D's last matrix is left empty,
    as room for backward.  Where processes share the rows, `starts` (n,) are the numbers of their
    first elements, for the masks.
    """
    layers, (replicas, n, width) = len(M1), H.shape
    H0, M1, M2 = H0.contiguous(), _like(H, M1), _like(H, M2)
    D = H.contiguous() if keys is None else drop(H, keys[0], kept, starts=starts)
    rooms = layers if saves else 2  # without backward, two matrices take turns
    outputs = H.new_empty(replicas, rooms, n, width)
    sums = H.new_empty(replicas, layers, n, width) if saves else None
    last = torch.empty_like(D)
    step: Step = _narrow_layer if isinstance(P, Narrow) else _wide_layer
    given = {"alpha": alpha, "skip": skip, "kept": kept, "starts": starts}
    for l in range(layers):
        key = keys[l + 1] if keys is not None and l + 1 < layers else None
        out = outputs[:, l % rooms] if l + 1 < layers else last
        S, m2 = None if sums is None else sums[:, l], None if M2 is None else M2[l]
        # Back and forth: a layer begins with the replicas that the one before left in the cache.
        step(P, D, H0, M1[l], m2, key, out, S, back=l % 2 == 1, **given)
        D = out
    return (last,) if sums is None else (last, outputs, sums)


class Part(NamedTuple):
    """Some rows of a matrix: what they gather, and sums that are there already."""

    P: SlottedMatrix
    source: Tensor
    others: Tensor | None = None


def _parts(P: Narrow, H: Tensor) -> Iterator[Part]:
    """All rows, in one part or two; the second one waits for other processes."""
    if isinstance(P, SlottedMatrix):
        yield Part(P, H)
        return
    wait = P.send(H)
    yield Part(P.inner, H)
    near = gather.gather(P.border, H)
    yield Part(P.arriving, wait(), near)


def _narrow_layer(P: Narrow, D: Tensor, *given: Any, **how: Any) -> None:
    """`forward_layer`, in one kernel for each part of P."""
    for part, source, others in _parts(P, D):
        forward_layer(part, D, *given, **how, source=source, others=others)


def _sums(P: Wide, H: Tensor, H0: Tensor | None, alpha: float, out: Tensor | None = None) -> Tensor:
    """P H [+ α H0]."""
    if isinstance(P, ScheduledMatrix):
        return gather.gather(P, H, H0, alpha, out)
    wait = P.send(H)
    S = gather.gather(P.near, H, H0, alpha, out)
    return S.add_(gather.gather(P.arriving, wait()))


def _wide_layer(
    P: Wide, D: Tensor, H0: Tensor, M1: Tensor, M2: Tensor | None, keys: Tensor | None,
    out: Tensor, S: Tensor | None,
    *, alpha: float, skip: float, kept: Tensor, back: bool, starts: Tensor | None,
) -> None:  # fmt: skip
    """What `forward_layer` computes, in one kernel for each step; `back` makes no difference."""
    S = _sums(P, D, H0 if alpha else None, alpha, S)
    Z = S @ M1 if M2 is None else (S @ M1).add_(H0 @ M2)
    finish_layer(Z, D if skip else None, skip, keys, kept, out, starts)


def backward(
    PT: Matrix, G: Tensor, H: Tensor, D: Tensor, S: Tensor, H0: Tensor,
    M1: Tensor, M2: Tensor | None, keys: Tensor | None, *, alpha: float, skip: float, kept: Tensor,
    starts: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:  # fmt: skip
    """The gradients of the first H, H0, M1 and M2; PT is Pᵀ, and G the gradient of the last H.

    D is overwritten: the gradient of a layer's product takes the place of the output whose sign it
    needed.
    """
    dH, W1, W2 = torch.empty_like(H), _like(H, M1), _like(H, M2)
    open_where(G.contiguous(), H, D[:, -1])
    if isinstance(PT, Narrow):
        dH0, dM1 = _fused_gradients(PT, D, S, W1, W2, dH, alpha, skip)
    else:
        dH0 = _wide_gradients(PT, D, W1, W2, dH, alpha, skip)
        dM1 = gradients(S.flatten(0, 1), D.flatten(0, 1)).unflatten(0, S.shape[:2]).transpose(0, 1)
    dM1 = dM1.to(M1.dtype)
    dM2 = None if M2 is None else _initial_gradients(H0, D).to(M2.dtype)
    dH = dH if keys is None else drop(dH, keys[0], kept, out=dH, starts=starts)
    return dH, dH0, dM1, dM2


def _fused_gradients(
    PT: Narrow, D: Tensor, S: Tensor, M1: Tensor, M2: Tensor | None, dH: Tensor, alpha: float,
    skip: float,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Overwrite D with the layers' dZ, fill dH, and return dH0 and dM1 (layers, r, h, h).

    Their sums and products wait for nothing but dZ.  Where they leave room on the GPU, they run
    beside the layers that follow; else at the end.
    """
    layers, dH0, dM1 = len(M1), torch.empty_like(dH), torch.empty_like(M1)
    M, scale = (M1, alpha) if M2 is None else (M2, 1.0)
    busy = len(S) * S.shape[2] >= BUSY
    ends = {0: layers} if busy else dict(_groups(layers))

    def sum_up(first: int) -> None:
        some = slice(first, ends[first])
        weight_gradients(S[:, some], D[:, some], dM1[some])
        initial_gradient(D[:, some], M[some], scale, dH0, add=ends[first] < layers)

    with Beside(D.device) as beside:
        for l in range(layers - 1, -1, -1):
            if l in ends and not busy:
                beside.launch(partial(sum_up, l))
            dZ, below = D[:, l], D[:, l - 1] if l else None
            out, back = dH if below is None else below, l % 2 == 1
            for part, source, others in _parts(PT, dZ):
                given = {"source": source, "others": others}
                backward_layer(part, dZ, M1[l], below, out, skip=skip, back=back, **given)
    if busy:
        sum_up(0)
    return dH0, dM1


def _groups(layers: int) -> Iterator[tuple[int, int]]:
    """The first layers of groups whose gradients are found at once, and where each group ends."""
    first, size = 0, LAST
    while first < layers:
        yield first, min(first + size, layers)
        first, size = first + size, min(2 * size, TOGETHER)


def _wide_gradients(
    PT: Wide, D: Tensor, M1: Tensor, M2: Tensor | None, dH: Tensor, alpha: float, skip: float
) -> Tensor:
    """The same in one kernel for each step; dH0 is summed up on the way."""
    dH0 = torch.zeros_like(dH)
    for l in range(len(M1) - 1, -1, -1):
        dZ, below = D[:, l], D[:, l - 1] if l else None
        dS, skipped = dZ @ M1[l].mT, dZ if skip else None
        dH0.add_(dS, alpha=alpha) if M2 is None else dH0.add_(dZ @ M2[l].mT)
        if below is None:
            _sums(PT, dS, skipped, skip, dH)
        elif isinstance(PT, ScheduledMatrix):
            gather.gather(PT, dS, skipped, skip, below, below)
        else:
            open_where(_sums(PT, dS, skipped, skip), below, below)
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
