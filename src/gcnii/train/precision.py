"""How exactly a GPU multiplies: the recipe's `precision` as torch's own switches."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from gcnii.train.recipe import Recipe


@contextmanager
def arithmetic(recipe: Recipe, device: torch.device) -> Iterator[None]:
    """Within, numbers are multiplied and kept as the recipe says.

    tf32      matrices of float32 are multiplied with 10 bits of mantissa and summed in float32
    bfloat16  so, and activations are kept with 7 bits; weights, sums and the loss stay float32

    On a CPU, which gains nothing by them, both are float32.
    """
    rounded = device.type == "cuda" and recipe.precision in ("tf32", "bfloat16")
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if rounded else "highest")
    try:
        # Without its cache of converted weights, which would outlive the CUDA graph that it was made in.
        with torch.autocast("cuda", torch.bfloat16, rounded and recipe.precision == "bfloat16", cache_enabled=False):
            yield
    finally:
        torch.set_float32_matmul_precision(before)
