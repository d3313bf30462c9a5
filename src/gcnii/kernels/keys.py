"""The keys of dropout's masks on a GPU, in one launch instead of forty."""

# mypy: disable-error-code="untyped-decorator, no-untyped-def, misc"

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from gcnii.kernels.blocks import mix


def epoch_keys(seeds: Tensor, epoch: Tensor, step: Tensor | None, first: Tensor) -> Tensor:
    """`dropout.epoch_key`: seeds (r,) int64, epochs () or (r, 1), a step () → (r, 2) int32.

    first  (2,) the words that all keys begin with
    """
    out = torch.empty(len(seeds), 2, dtype=torch.int32, device=seeds.device)
    _epoch_keys[(len(seeds),)](
        seeds.view(torch.int32), epoch, seeds if step is None else step, first, out,
        EACH=epoch.numel() > 1, STEP=step is not None,
    )  # fmt: skip
    return out


@triton.jit
def _epoch_keys(seeds, epoch, step, first, out, EACH: tl.constexpr, STEP: tl.constexpr):
    replica, lane = tl.program_id(0), tl.arange(0, 2)
    key = tl.load(first + lane).to(tl.uint32, bitcast=True)
    for half in tl.static_range(2):
        key = mix(key ^ tl.load(seeds + 2 * replica + half).to(tl.uint32, bitcast=True))
    now = tl.load(epoch + replica) if EACH else tl.load(epoch)
    key = mix(key ^ now.to(tl.int32).to(tl.uint32, bitcast=True))
    if STEP:
        number = tl.load(step).to(tl.int32)
        key = tl.where(number > 0, mix(key ^ number.to(tl.uint32, bitcast=True)), key)
    tl.store(out + 2 * replica + lane, key.to(tl.int32, bitcast=True))
