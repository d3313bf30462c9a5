"""All layers of GCNII or of a relative as one step of autograd, which knows its own backward pass.

    D_l = H_l where kept, else 0       S_l = (1-α) P̃ D_{l-1} / keep + α H0
                                       H_l = ReLU(S_l M1_l + H0 M2_l + D_{l-1} / keep)

where M2 and the last addition are those of some forms alone.  (1-α) / keep is in P's values, so
that a mask only ever sets to zero, and S is one sum.  Backward needs S_l, and D_l for its sign: it
is positive where the ReLU is open and the entry was kept.

Within, tensors carry an axis of replicas, (r, n, h); `forward_layer`, `backward_layer` and
`weight_gradients` are the three pieces of work.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from gcnii import kernels
from gcnii.dropout import LEVELS, Dropout, InplaceDropout, next_keys
from gcnii.errors import UsageError
from gcnii.propagation import Pattern, Sparse
from gcnii.propagation.product import multiply_each


@dataclass(frozen=True)
class Mappings:
    """What tells one form from another, and the weights of all layers as matrices.

    M1     (layers, h, h), by which S is multiplied
    M2     (layers, h, h), by which H0 is, or None
    alpha  α: share of H0 in S
    skip   whether a layer adds its input
    """

    M1: Tensor
    M2: Tensor | None = None
    alpha: float = 0.0
    skip: bool = False


@dataclass(frozen=True)
class Form:
    """What the layers of one call have in common.

    alpha  α: share of H0 in S
    skip   by which the input is multiplied where it is added: 0 or 1/keep
    kept   of LEVELS, by dropout
    saves  whether backward will come
    """

    pattern: Pattern
    alpha: float
    skip: float
    kept: int
    saves: bool

    @property
    def common(self) -> dict[str, Any]:
        """What the kernels take of it."""
        return {"alpha": self.alpha, "skip": self.skip, "kept": self.kept}


def fused_layers(P: Sparse, H: Tensor, H0: Tensor, mappings: Mappings, drop: Dropout) -> Tensor:
    """H (n, h) → H_L (n, h), with the masks that one dropout after the other would draw.

    P's values must need no gradient; they may differ from replica to replica.
    """
    if torch.is_autocast_enabled(H.device.type):
        H, H0 = (one.to(torch.get_autocast_dtype(H.device.type)) for one in (H, H0))
    M1, M2, scale, keys = mappings.M1, mappings.M2, 1.0, None
    if drop.active:
        scale, keys = LEVELS / drop.kept, next_keys(len(M1), H.device)[:, None]
    values, transposed = (
        one[None] * (scale * (1 - mappings.alpha)) for one in (P.values, P.transposed)
    )
    form = Form(
        P.pattern, mappings.alpha, mappings.skip * scale, drop.kept, torch.is_grad_enabled()
    )
    M = M1[:, None], None if M2 is None else M2[:, None]
    return _fused(values, transposed, H[None], H0[None], *M, keys, form)[0].squeeze(0)


def forward_layer(
    P: Sparse,
    D: Tensor,
    H0: Tensor,
    M1: Tensor,
    M2: Tensor | None,
    key: Tensor | None,
    erase: InplaceDropout,
    form: Form,
) -> tuple[Tensor, Tensor]:
    """D (r, n, h), M1 and M2 (r, h, h) → the next D, and S; without a key (r, 2), nothing is
    dropped of the next.
    """
    S = multiply_each(P.pattern, P.values, D)
    if form.alpha:
        S.add_(H0, alpha=form.alpha)
    Z = torch.bmm(S, M1)
    if M2 is not None:
        Z.baddbmm_(H0, M2)
    if form.skip:
        Z.add_(D, alpha=form.skip)
    H = Z.relu_()
    return H if key is None else erase(H, key), S


def backward_layer(
    PT: Sparse, dZ: Tensor, M1: Tensor, D: Tensor | None, dS: Tensor, dH0: Tensor, form: Form
) -> Tensor:
    """dZ of a layer → that of the layer before, of which D is the output; without D, the gradient
    of the input.

    dS   room for it
    dH0  to which S's part of H0's gradient is added
    """
    torch.bmm(dZ, M1.mT, out=dS)
    if form.alpha:
        dH0.add_(dS, alpha=form.alpha)
    dD = multiply_each(PT.pattern, PT.values, dS)
    if form.skip:
        dD.add_(dZ, alpha=form.skip)
    return dD if D is None else _where_positive(dD, D)


def weight_gradients(S: Tensor, dZ: Tensor, out: Tensor) -> None:
    """S and dZ (r, n, h): the gradient (r, h, h) of the matrix by which S was multiplied."""
    torch.bmm(S.mT, dZ, out=out)


class Fused(torch.autograd.Function):
    """P's values (1 or r, entries); H, H0 (r, n, h); M1, M2 (layers, r, h, h); keys (layers, r, 2)
    → H_L (r, n, h).

    Its further outputs are D_1, …, D_{L-1} and S_1, …, S_L, for backward.  They are many tensors
    and not one stack, because malloc maps what is larger than 32 MB anew each epoch: for 64 layers
    on Cora, 11,000 page faults a stack.
    """

    @staticmethod
    def forward(
        values: Tensor,
        transposed: Tensor,
        H: Tensor,
        H0: Tensor,
        M1: Tensor,
        M2: Tensor | None,
        keys: Tensor | None,
        form: Form,
    ) -> tuple[Tensor, ...]:
        """Layer by layer."""
        if kernels.usable(H):
            from gcnii.kernels import stack

            # made now, because it takes room, of which there is less when backward begins
            if form.saves:
                stack.order(form.pattern.transposed[0], H)
            weighted = stack.order(form.pattern, H).with_values(values)
            return stack.forward(weighted, H, H0, M1, M2, keys, saves=form.saves, **form.common)
        P, erase, layers = (
            Sparse(form.pattern, values, transposed),
            InplaceDropout(H, form.kept),
            len(M1),
        )
        D = H if keys is None else erase(H.clone(), keys[0])
        outputs, sums = [], []
        for l in range(layers):
            key = keys[l + 1] if keys is not None and l + 1 < layers else None
            D, S = forward_layer(P, D, H0, M1[l], None if M2 is None else M2[l], key, erase, form)
            if form.saves:
                outputs.append(D)
                sums.append(S)
        return D, *outputs[:-1], *sums

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        """Keep the outputs."""
        values, transposed, _, H0, M1, M2, keys, ctx.form = inputs
        ctx.spent = False
        ctx.mark_non_differentiable(*output[1:])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(values, transposed, H0, M1, M2, keys, *output)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, G: Tensor, *_: None) -> tuple[Tensor | None, ...]:
        """The last layer first."""
        values, transposed, H0, M1, M2, keys, H, *saved = ctx.saved_tensors
        form, last = ctx.form, len(M1) - 1
        if kernels.usable(H):
            from gcnii.kernels import stack

            if ctx.spent:
                raise UsageError(
                    "on a GPU, backward through GCNII's layers overwrites what it was given; run forward again"
                )
            ctx.spent = True
            weighted = stack.order(form.pattern.transposed[0], H).with_values(transposed)
            D, S = saved
            gradients = stack.backward(weighted, G, H, D, S, H0, M1, M2, keys, **form.common)
            return None, None, *gradients, None, None
        D, S = saved[:last], saved[last:]
        PT = Sparse(form.pattern.transposed[0], transposed, values)
        dH0, dM1, dS = torch.zeros_like(H0), torch.empty_like(M1), torch.empty_like(H)
        dM2 = None if M2 is None else torch.empty_like(M2)
        dZ = _where_positive(G.clone(), H)
        for l in range(last, -1, -1):
            weight_gradients(S[l], dZ, dM1[l])
            if dM2 is not None:
                weight_gradients(H0, dZ, dM2[l])
                dH0.baddbmm_(dZ, M2[l].mT)
            dZ = backward_layer(PT, dZ, M1[l], D[l - 1] if l else None, dS, dH0, form)
        dH = dZ if keys is None else InplaceDropout(dZ, form.kept)(dZ, keys[0])
        return None, None, dH, dH0, dM1, dM2, None, None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], *inputs: Any
    ) -> tuple[tuple[Tensor, ...], int]:
        """More replicas."""
        more, (*tensors, form) = info.batch_size, inputs
        replicas = tensors[2].shape[0 if in_dims[2] is None else in_dims[2] == 0]
        shared = in_dims[0] is None and len(tensors[0]) == 1  # P, by all replicas

        def merge(tensor: Tensor, dim: int | None, axis: int) -> Tensor:
            tensor = tensor.unsqueeze(axis) if dim is None else tensor.movedim(dim, axis)
            shape = *tensor.shape[:axis], more, replicas, *tensor.shape[axis + 2 :]
            return tensor.expand(shape).flatten(axis, axis + 1)

        merged = [
            tensor if tensor is None or (shared and i < 2) else merge(tensor, dim, axis)
            for i, (tensor, dim, axis) in enumerate(zip(tensors, in_dims, AXES, strict=False))
        ]
        return tuple(one.unflatten(0, (more, -1)) for one in _fused(*merged, form)), 0


# torch asks for this at every call; made once instead of each time, it saves 15 µs.
Fused.forward.__signature__ = inspect.signature(Fused.forward)  # type: ignore[attr-defined]
AXES = (0, 0, 0, 0, 1, 1, 1)  # where the replicas are in the tensors that Fused takes


def _fused(*inputs: Any) -> tuple[Tensor, ...]:
    return Fused.apply(*inputs)  # type: ignore[no-any-return, no-untyped-call]


def _where_positive(G: Tensor, D: Tensor) -> Tensor:
    """G, with zero where D is not positive, in place."""
    return torch.ops.aten.threshold_backward.grad_input(G, D, 0, grad_input=G)  # type: ignore[no-any-return]
