"""Compile every kernel for compute capability 9.0, without a GPU: the interpreter misses errors."""

import triton.language as tl
from triton import compile
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from gcnii.kernels import attend, draw, gather, layer, layouts, loss, mask

INDICES = (
    "order",
    "owner",
    "offsets",
    "index",
    "rows",
    "columns",
    "starts",
    "ends",
    "key",
    "keys",
    "kept",
)
EXACT = ("values", "weights")
NUMBERS = ("alpha", "skip", "scale")
COMMON = {"HUBS": 2, "BLOCK": 32, "UNROLL": 2, "EVEN": False}
DRAWN = "nodes start count ends powers strange reached row_of link"
LAYER = {"HUBS": 2, "BLOCK": 32, "EVEN": False, "WIDTH": 64, "INNER": 64, "SKIP": True}


def check(kernel, constants, stored, matrices, warps=4):
    """Compile it; `matrices` names the arguments of the type `stored`."""
    types = (
        dict.fromkeys(INDICES, "*i32")
        | dict.fromkeys(EXACT, "*fp32")
        | dict.fromkeys(NUMBERS, "fp32")
        | ({"starts": "*i64"} if "SHARED" in constants else {})
        | {"met": "*u8", "loops": "*fp32", "place": "*i32", "out": "*i32"}
        | dict.fromkeys(("s_high", "s_low", "t_high", "t_low"), "i64")
        | {"others": "*i32", "y": "*i64"}
    )
    types |= dict.fromkeys(matrices.split(), f"*{stored}")
    types |= {"order": "*i64"} if "others" in kernel.arg_names else {}
    signature = {
        name: "constexpr" if name in constants else types.get(name, "i32")
        for name in kernel.arg_names
    }
    places = {(kernel.arg_names.index(name),): value for name, value in constants.items()}
    compile(
        ASTSource(kernel, signature, places),
        target=GPUTarget("cuda", 90, 32),
        options={"num_warps": warps},
    )


for stored, precision in (("fp32", "tf32x3"), ("bf16", "tf32")):
    exact = {"PRECISION": precision}
    for star in (False, True):
        flags = {"STAR": star, "DROP": star, "KEEP": star, "PART": 32, "SHARED": star}
        flags |= {"EXTRA": not star}
        check(layer._forward, LAYER | exact | flags, stored, "F D H0 M1 M2 extra S out")
    masked = {"MASK": True, "EXTRA": True}
    check(layer._backward, LAYER | exact | masked, stored, "F dZ M1 D extra out")
    sizes = {"WIDTH": 64, "INNER": 64, "BLOCK": 64, "EVEN": True, "STAGES": 3}
    check(layer._initial, sizes | exact, stored, "dZ M out")
    tile = {"TYPE": tl.float32, "COLUMNS": 128}
    check(gather._gather, COMMON | tile | {"INITIAL": True, "MASK": True}, stored, "B H H0 D out")
    check(gather._sum_piece, tile | {"PIECE": 32}, stored, "H B", warps=2)
    check(gather._sum_row, tile | {"PIECE": 8}, stored, "H out", warps=2)
    check(gather._dots, tile | {"BLOCK": 16}, stored, "G H out")
    check(mask._drop, {"BLOCK": 1024, "SCALED": True, "SHARED": True}, stored, "H out")
    finish = {"SKIP": True, "DROP": True, "SHARED": True, "BLOCK": 1024}
    check(mask._finish, finish, stored, "Z D out")
    check(mask._open_where, {"BLOCK": 1024}, stored, "G H out")
attending = {"TYPE": tl.float32, "COLUMNS": 32}
pointers = "Z a1 a2 own theirs values L out G dx down dtheirs dZ"
check(attend._score, attending | {"ROWS": 64}, "fp32", pointers, warps=1)
for drops in (False, True):
    flags = attending | {"DROP": drops, "PIECE": 16, "SLOPE": 0.2}
    for kernel in (attend._attend, attend._by_row, attend._by_column):
        check(kernel, flags, "fp32", pointers, warps=1)
check(mask._mask, {"BLOCK": 1024}, "i16", "out")
for long in (False, True):
    check(
        draw._draw, {"LONG": long, "KEEP": 32, "BLOCK": 1024, "PLACES": 40}, "i64", DRAWN, warps=8
    )
check(draw._all, {"BLOCK": 64}, "i64", DRAWN)
check(draw._ends, {"BLOCK": 1024}, "i64", DRAWN, warps=8)
check(draw._reach, {"BLOCK": 1024}, "i64", DRAWN)
for root in (False, True):
    check(draw._fill, {"BLOCK": 64, "ROOT": root}, "i64", DRAWN)
check(mask._key_run, {"BLOCK": 1024}, "i32", "out")
check(mask._epoch_keys, {"EACH": True, "STEP": True}, "i32", "seeds epoch step first out")
check(layouts._place, {"BLOCK": 1024}, "fp32", "out")
for kernel in (loss._entropies, loss._gradient):
    check(kernel, {"TYPE": tl.float32, "ROWS": 8, "COLUMNS": 128}, "fp32", "scores G out")
