"""All layers of GCNII or of a relative as one autograd function with a backward pass of its own.

    D_l = H_l where kept, else 0       S_l = (1-α) P̃ D_{l-1} / keep + α H0
                                       H_l = ReLU(S_l M1_l + H0 M2_l + D_{l-1} / keep)

where only some forms have M2 and the last addition.  (1-α) / keep is part of P's values, so that a
mask only ever sets entries to zero, and S is one sum.  Backward needs S_l, and the sign of D_l: it
is positive where the ReLU is open and the entry was kept.

Inside, tensors have an axis of replicas, (r, n, h); `forward_layer`, `backward_layer` and
`weight_gradients` do the work.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from gcnii import kernels
from gcnii.dropout import LEVELS, Dropout, InplaceDropout, levels, next_keys
from gcnii.errors import UsageError, notice
from gcnii.kernels import compiled
from gcnii.kernels.compiled import STEP, WIDEST, Entries, Library
from gcnii.propagation import Sparse
from gcnii.propagation.sparse import (
    AnyPattern,
    CutPattern,
    Pattern,
    RowNumbers,
    VmapInfo,
    multiply_each,
    shared,
)

if TYPE_CHECKING:
    from gcnii.kernels.stack import Matrix


@dataclass(frozen=True)
class Mappings:
    """The weights of all layers as matrices, and what distinguishes the forms of GCNII.

    M1     (layers, h, h), by which S is multiplied
    M2     (layers, h, h), by which H0 is multiplied, or None
    alpha  α: share of H0 in S; () in a batch of replicas with different ones
    skip   whether a layer adds its input
    """

    M1: Tensor
    M2: Tensor | None = None
    alpha: float | Tensor = 0.0
    skip: bool = False


@dataclass(frozen=True)
class FusedCall:
    """What the layers of one call have in common.

    places  where P̃'s values are
    alpha   α: share of H0 in S
    skip    factor of the input that a layer adds: 0 or 1/keep
    kept    how many of LEVELS dropout keeps; not used where replicas differ in it
    saves   whether backward will follow
    rows    of the whole graph that are at hand, for dropout; None: all
    """

    places: Pattern | CutPattern
    alpha: float
    skip: float
    kept: int
    saves: bool
    rows: RowNumbers | None = None


def fused_layers(P: Sparse, H: Tensor, H0: Tensor, mappings: Mappings, drop: Dropout) -> Tensor:
    """H (n, h) → H_L (n, h), with the masks that separate dropout calls would draw.

    P's values must not need a gradient; they may differ between replicas.  So may α and, on a GPU
    and without `skip`, the rate of dropout.
    """
    if torch.is_autocast_enabled(H.device.type):
        H, H0 = (one.to(torch.get_autocast_dtype(H.device.type)) for one in (H, H0))
    M1, M2, alpha, kept = mappings.M1, mappings.M2, mappings.alpha, drop.kept
    scale: float | Tensor = 1.0
    keys = mixed = None
    if drop.active:
        scale, keys = drop.scale(P.values.dtype), next_keys(len(M1), H.device)[:, None]
    saves, factor = torch.is_grad_enabled(), scale * (1 - alpha)
    values, transposed = P.values[None] * factor, P.transposed[None] * factor if saves else None
    if isinstance(alpha, Tensor):
        H0, alpha = alpha.to(H0.dtype) * H0, 1.0  # the layers then add H0 as it is
    if isinstance(kept, Tensor):
        mixed, kept = levels(kept, H.device), 0
    skip = float(mappings.skip and scale)
    call = FusedCall(P.places, alpha, skip, kept, saves, P.row_numbers)
    M = M1[:, None], None if M2 is None else M2[:, None]
    return _fused(values, transposed, H[None], H0[None], *M, keys, mixed, call)[0].squeeze(0)


def fused_rows(P: Sparse, H: Tensor, own: Tensor, H0: Tensor, mappings: Mappings, l: int) -> Tensor:
    """Some rows after layer l, where nothing is dropped: those of P̃, `own` of H, and of H0."""
    alpha = mappings.alpha
    assert not isinstance(alpha, Tensor)
    call = FusedCall(P.pattern, alpha, float(mappings.skip), 0, saves=False)
    M1, M2 = mappings.M1[l : l + 1], None if mappings.M2 is None else mappings.M2[l : l + 1]
    S = multiply_each(P.pattern, P.values[None] * (1 - alpha), H[None])
    return finished_layer(S, own[None], H0[None], M1, M2, call)[0]


def forward_layer(
    values: Tensor, D: Tensor, H0: Tensor, M1: Tensor, M2: Tensor | None, key: Tensor | None,
    erase: InplaceDropout, call: FusedCall,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """D (r, n, h), M1 and M2 (r, h, h) → the next D, dropped if there is a key (r, 2), and S."""
    S = multiply_each(call.places, values, D)
    H = finished_layer(S, D, H0, M1, M2, call)
    return H if key is None else erase(H, key), S


def finished_layer(
    S: Tensor, D: Tensor, H0: Tensor, M1: Tensor, M2: Tensor | None, call: FusedCall
) -> Tensor:
    """The rest of a layer after P̃ D, which is in S and gets the share of H0 added."""
    if call.alpha:
        S.add_(H0, alpha=call.alpha)
    Z = dense_product(S, M1)
    if M2 is not None:
        Z.baddbmm_(H0, M2)
    if call.skip:
        Z.add_(D, alpha=call.skip)
    return Z.relu_()


def backward_layer(
    transposed: Tensor, dZ: Tensor, M1: Tensor, D: Tensor | None, dH0: Tensor, call: FusedCall
) -> Tensor:
    """dZ of a layer → dZ of the layer before, whose output is D; without D, the input's gradient.

    dH0  gradient of H0, to which the part through S is added
    """
    dS = dense_product(dZ, M1.mT)
    if call.alpha:
        dH0.add_(dS, alpha=call.alpha)
    dD = multiply_each(call.places.transposed[0], transposed, dS)
    if call.skip:
        dD.add_(dZ, alpha=call.skip)
    return dD if D is None else _where_positive(dD, D)


def weight_gradients(S: Tensor, dZ: Tensor, out: Tensor) -> None:
    """Write Sᵀ dZ (r, h, h), the gradient of the matrix by which S was multiplied, to `out`."""
    torch.bmm(S.mT, dZ, out=out)


class Fused(torch.autograd.Function):
    """P's values (1 or r, entries), H, H0, M1, M2, keys → H_L (r, n, h), and what backward needs.

    H, H0 (r, n, h); M1, M2 (layers, r, h, h); keys (layers, r, 2); kept (r,), of replicas that
    differ in it.  The further outputs are D_1, …,
    D_{L-1} and S_1, …, S_L.  On a CPU they are many tensors and not one stack, because malloc maps
    what is larger than 32 MB anew each epoch: for 64 layers on Cora, 11,000 page faults per stack.
    """

    @staticmethod
    def forward(
        values: Tensor, transposed: Tensor | None, H: Tensor, H0: Tensor,
        M1: Tensor, M2: Tensor | None, keys: Tensor | None, kept: Tensor | None, call: FusedCall,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        """Run the layers one by one."""
        if kernels.usable(H):
            return _forward_on_gpu(values, H, H0, M1, M2, keys, kept, call)
        D = H if keys is None else InplaceDropout(H, call.kept, call.rows)(H.clone(), keys[0])
        library = _library_for(D, call)
        outputs, sums = _forward_on_cpu(values, D, H0, M1, M2, keys, call, library)
        return outputs[-1], *(outputs[:-1] if call.saves else ()), *sums

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        """Save what backward needs of the inputs, and all outputs."""
        _, transposed, _, H0, M1, M2, keys, kept, ctx.call = inputs
        ctx.spent = False
        ctx.mark_non_differentiable(*output[1:])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(transposed, H0, M1, M2, keys, kept, *output)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, G: Tensor, *_: None) -> tuple[Tensor | None, ...]:
        """The gradients of H, H0, M1 and M2."""
        transposed, H0, M1, M2, keys, kept, H, *saved = ctx.saved_tensors
        if kernels.usable(H):
            if ctx.spent:
                raise UsageError(SPENT)
            ctx.spent = True
            found = _backward_on_gpu(transposed, G, H, saved, H0, M1, M2, keys, kept, ctx.call)
        else:
            call, last = ctx.call, len(M1) - 1
            dZ, D, S = _where_positive(G.clone(), H), saved[:last], saved[last:]
            library = _library_for(dZ, call)
            dH, *others = _backward_on_cpu(transposed, dZ, H0, M1, M2, D, S, call, library)
            if keys is not None:
                dH = InplaceDropout(dH, call.kept, call.rows)(dH, keys[0])
            found = dH, *others
        return None, None, *found, None, None, None

    @staticmethod
    def vmap(
        info: VmapInfo, in_dims: tuple[int | None, ...],
        values: Tensor, transposed: Tensor | None, H: Tensor, H0: Tensor,
        M1: Tensor, M2: Tensor | None, keys: Tensor | None, kept: Tensor | None, call: FusedCall,
    ) -> tuple[tuple[Tensor, ...], int]:  # fmt: skip
        """Replicas of replicas become more replicas."""
        replicas = info.batch_size, H.shape[0 if in_dims[2] is None else in_dims[2] == 0]
        shared = in_dims[0] is None and len(values) == 1  # whether all replicas share P
        tensors = (values, transposed, H, H0, M1, M2, keys, kept)
        merged = [
            tensor if tensor is None or (shared and i < 2) else _merge(tensor, dim, axis, replicas)
            for i, (tensor, dim, axis) in enumerate(zip(tensors, in_dims, AXES, strict=False))
        ]
        return tuple(one.unflatten(0, (info.batch_size, -1)) for one in _fused(*merged, call)), 0


# torch asks for this at every call; made once instead of each time, it saves 15 µs.
Fused.forward.__signature__ = inspect.signature(Fused.forward)  # type: ignore[attr-defined]
AXES = (0, 0, 0, 0, 1, 1, 1, 0)  # the axis of replicas of each tensor that Fused takes
SPENT = (
    "on a GPU, backward through GCNII's layers runs only once, because it overwrites what forward "
    "saved; run forward again"
)


def _fused(*inputs: Tensor | FusedCall | None) -> tuple[Tensor, ...]:
    return Fused.apply(*inputs)  # type: ignore[no-any-return, no-untyped-call]


def _forward_on_gpu(
    values: Tensor, H: Tensor, H0: Tensor, M1: Tensor, M2: Tensor | None, keys: Tensor | None,
    kept: Tensor | None, call: FusedCall,
) -> tuple[Tensor, ...]:  # fmt: skip
    from gcnii.kernels import stack

    # Backward's layout is made now, because it takes memory, and less is free when backward begins.
    if call.saves:
        _lay_out(call.places.transposed[0], H)
    P, given = _matrix(call.places, values, H, back=False), _given(kept, call, H)
    return stack.forward(P, H, H0, M1, M2, keys, saves=call.saves, **given)


def _backward_on_gpu(
    transposed: Tensor, G: Tensor, H: Tensor, saved: list[Tensor], H0: Tensor,
    M1: Tensor, M2: Tensor | None, keys: Tensor | None, kept: Tensor | None, call: FusedCall,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    from gcnii.kernels import stack

    D, S = saved
    PT, given = _matrix(call.places.transposed[0], transposed, H, back=True), _given(kept, call, H)
    return stack.backward(PT, G, H, D, S, H0, M1, M2, keys, **given)


def _lay_out(places: AnyPattern, H: Tensor) -> None:
    """Make the kernels' layout for backward, which is kept."""
    from gcnii.kernels import stack

    stack.order(places, H, back=True) if isinstance(places, Pattern) else stack.cut_order(places, H)


def _matrix(places: AnyPattern, values: Tensor, H: Tensor, *, back: bool) -> Matrix:
    """P̃ or its transpose as the kernels take it."""
    from gcnii.kernels import stack

    if isinstance(places, Pattern):
        return stack.order(places, H, back=back).with_values(values)
    return stack.cut_matrix(places, *shared(places, values), H)


def _given(kept: Tensor | None, call: FusedCall, H: Tensor) -> dict[str, Any]:
    """What the kernels need to know beside tensors.

    kept    (1,) where all replicas keep as much, else (r,)
    starts  the numbers of the rows' first elements; None where all rows are here
    """
    share = levels(call.kept, H.device) if kept is None else kept
    starts = None if call.rows is None else call.rows.starts(H.shape[1:])[0]
    return {"alpha": call.alpha, "skip": call.skip, "kept": share, "starts": starts}


def _forward_on_cpu(
    values: Tensor, D: Tensor, H0: Tensor, M1: Tensor, M2: Tensor | None, keys: Tensor | None,
    call: FusedCall, library: Library | None,
) -> tuple[list[Tensor], list[Tensor]]:  # fmt: skip
    """D_1, …, D_L and S_1, …, S_L; unless the call saves, all but D_L may be lost."""
    if library is not None:
        return library.forward_layers(
            _entries(call.places, values), D, H0, M1, M2, keys, below=call.kept - LEVELS // 2,
            alpha=call.alpha, skip=call.skip, saves=call.saves,
        )  # fmt: skip
    erase, layers = InplaceDropout(D, call.kept, call.rows), len(M1)
    outputs, sums = [], []
    for l in range(layers):
        key = keys[l + 1] if keys is not None and l + 1 < layers else None
        m2 = None if M2 is None else M2[l]
        D, S = forward_layer(values, D, H0, M1[l], m2, key, erase, call)
        if call.saves:
            outputs.append(D)
            sums.append(S)
    return outputs or [D], sums


def _backward_on_cpu(
    transposed: Tensor, dZ: Tensor, H0: Tensor, M1: Tensor, M2: Tensor | None,
    D: Sequence[Tensor], S: Sequence[Tensor], call: FusedCall, library: Library | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:  # fmt: skip
    """dZ_L, which is overwritten → the gradients of D_0, H0, M1 and M2."""
    if library is not None:
        PT = _entries(call.places.transposed[0], transposed)
        return library.backward_layers(PT, dZ, H0, M1, M2, D, S, alpha=call.alpha, skip=call.skip)
    dH0, dM1 = torch.zeros_like(H0), torch.empty_like(M1)
    dM2 = None if M2 is None else torch.empty_like(M2)
    for l in range(len(M1) - 1, -1, -1):
        weight_gradients(S[l], dZ, dM1[l])
        if M2 is not None and dM2 is not None:
            weight_gradients(H0, dZ, dM2[l])
            dH0.baddbmm_(dZ, M2[l].mT)
        dZ = backward_layer(transposed, dZ, M1[l], D[l - 1] if l else None, dH0, call)
    return dZ, dH0, dM1, dM2


def _merge(tensor: Tensor, dim: int | None, axis: int, replicas: tuple[int, int]) -> Tensor:
    """Join vmap's dimension and the axis of replicas; without one, all share the tensor."""
    tensor = tensor.unsqueeze(axis) if dim is None else tensor.movedim(dim, axis)
    shape = *tensor.shape[:axis], *replicas, *tensor.shape[axis + 2 :]
    return tensor.expand(shape).flatten(axis, axis + 1)


def dense_product(S: Tensor, M: Tensor) -> Tensor:
    """S M for S (r, n, h) and M (r, h, h); torch records nothing.

    A row's numbers depend neither on the other rows, nor on replicas and threads.
    """
    small = S[0].numel() * len(M[0]) < LEAST
    if not S.is_cpu or S.dtype != torch.float32 or small or not _onednn_is_faster():
        return torch.bmm(S, M)
    linear = torch.ops.mkldnn._linear_pointwise
    each = [linear(s, m.T, None, "none", [], "") for s, m in zip(S, M, strict=True)]
    return torch.stack(each) if len(each) > 1 else each[0][None]


LEAST = 1 << 20  # multiplications of a replica; below, oneDNN's 14 µs a call are too many


@cache
def _onednn_is_faster() -> bool:
    """Whether MKL, which multiplies for torch, might leave half of the vector registers unused.

    That is what it does on AMD's processors with AVX-512.
    """
    wide = torch.backends.cpu.get_cpu_capability() == "AVX512"
    return wide and torch.backends.mkldnn.is_available()


def are_compiled(width: int, dtype: torch.dtype) -> bool:
    """Whether fused layers of this kind are compiled on a CPU."""
    takes = dtype == torch.float32 and width % STEP == 0 and 0 < width <= WIDEST
    return takes and _library() is not None


def _library_for(H: Tensor, call: FusedCall) -> Library | None:
    """What is compiled for matrices like this one.

    Not for a part of what other processes share, and not where torch watches its own operations.
    """
    if call.rows is not None or not isinstance(call.places, Pattern):
        return None
    tracing = torch.jit.is_tracing()  # type: ignore[attr-defined,no-untyped-call]
    watched = tracing or torch.compiler.is_compiling() or type(H) is not Tensor
    if watched or not H.is_cpu or not are_compiled(H.shape[-1], H.dtype):
        return None
    return _library()


def _entries(places: AnyPattern, values: Tensor) -> Entries:
    assert isinstance(places, Pattern)
    return places.rows, places.columns, values


@cache
def _library() -> Library | None:
    """The compiled layers, if they say what torch's operations say."""
    found = compiled.library()
    if found is not None and not _agrees(found):
        notice(f"compiled layers are left out, whose numbers are not torch's; {compiled.REMEDY}")
        return None
    return found


def _agrees(library: Library) -> bool:
    """Whether it does in small what torch's operations do."""
    draw, n = torch.Generator().manual_seed(0), 40
    rows = torch.arange(n + 1, dtype=torch.int32).square() // 20  # up to four entries each
    columns = torch.randint(n, (int(rows[-1]),), generator=draw, dtype=torch.int32)
    values, places = torch.rand(1, len(columns), generator=draw), Pattern(rows, columns, (n, n))
    call = FusedCall(places, 0.5, 1.5, LEVELS // 2, saves=True)
    for h in (STEP, 2 * STEP):
        D, H0, dZ = (torch.randn(1, n, h, generator=draw) for _ in range(3))
        M1, M2 = (torch.randn(2, 1, h, h, generator=draw) / h for _ in range(2))
        keys = torch.randint(1 << 30, (2, 1, 2), generator=draw, dtype=torch.int32)
        given = (H0, M1, M2)
        plain, own = (
            _forward_on_cpu(values, D, *given, keys, call, one) for one in (None, library)
        )
        plain_gradients, gradients = (
            _backward_on_cpu(values, dZ.clone(), *given, *plain, call, one)
            for one in (None, library)
        )
        known = (*plain[0], *plain[1], *plain_gradients)
        found = (*own[0], *own[1], *gradients)
        if not all(map(_near, found, known)):
            return False
    return True


def _near(one: Tensor | None, other: Tensor | None) -> bool:
    return one is not None and other is not None and torch.allclose(one, other, 1e-4, 1e-4)


def _where_positive(G: Tensor, D: Tensor) -> Tensor:
    """Set G to zero where D is not positive, in place."""
    return torch.ops.aten.threshold_backward.grad_input(G, D, 0, grad_input=G)  # type: ignore[no-any-return]
