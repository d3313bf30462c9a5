"""The layers of GCNII on a CPU, from `layer.c`, which this machine's compiler makes a library of.

Without a compiler torch's operations do the same, with the same masks and other rounding.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from ctypes import byref, c_float, c_int, c_int32, c_int64, c_void_p
from functools import cache
from pathlib import Path
from typing import TypeAlias

import torch
from torch import Tensor

from gcnii.errors import notice, one_line
from gcnii.files import atomic_write

SOURCE = Path(__file__).with_name("layer.c")
FLAGS = ("-O3", "-march=native", "-fopenmp", "-shared", "-fPIC")
STEP, WIDEST = 32, 256  # numbers of columns are multiples of STEP, and no larger
Entries: TypeAlias = tuple[Tensor, Tensor, Tensor]  # rows, columns, and values (1 or r, entries)
REMEDY = "torch computes them, more slowly; GCNII_CC names another compiler, or, empty, none"
LONGEST = 60  # seconds that a compiler may take


class _Given(ctypes.Structure):
    """What layer.c takes: numbers, and tensors or lists of them, held as long as this is."""

    def __init__(self, **given: Tensor | list[Tensor] | float | None):
        super().__init__()
        self.held: list[object] = []
        for name, one in given.items():
            self.held.append(one)
            value: object = one
            if isinstance(one, Tensor):
                value = one.data_ptr()
            elif isinstance(one, list):
                self.held.append(each := (c_void_p * len(one))(*[t.data_ptr() for t in one]))
                value = ctypes.addressof(each) if one else None
            setattr(self, name, value)


def _fields(kind: type, *names: str) -> list[tuple[str, type]]:
    return [(name, kind) for name in names]


class _Forward(_Given):
    _fields_ = (
        *_fields(c_int64, "n", "h", "layers", "replicas"),
        *_fields(c_void_p, "rows", "columns", "values", "H", "H0", "M1", "M2", "keys", "D", "S"),
        *_fields(c_float, "alpha", "skip"),
        ("below", c_int32),
    )


class _Backward(_Given):
    _fields_ = (
        *_fields(c_int64, "n", "h", "layers", "replicas"),
        *_fields(c_void_p, "rows", "columns", "values", "H0", "M1T", "M2T", "D", "S"),
        *_fields(c_float, "alpha", "skip"),
        *_fields(c_void_p, "dZ", "dS", "dH0", "parts", "dM1", "dM2"),
    )


class Library:
    """The functions of layer.c, for replicas: H (r, n, h) and M (L, r, h, h)."""

    def __init__(self, path: Path):
        # Its threads are those of torch, whose OpenMP is there for all.
        self.functions = found = ctypes.CDLL(str(path))
        found.chunks.argtypes, found.chunks.restype = [c_int64], c_int64
        found.forward_layers.argtypes = found.backward_layers.argtypes = [c_void_p, c_int]

    def forward_layers(
        self, P: Entries, D: Tensor, H0: Tensor, M1: Tensor, M2: Tensor | None,
        keys: Tensor | None, *, below: int, alpha: float, skip: float, saves: bool,
    ) -> tuple[list[Tensor], list[Tensor]]:  # fmt: skip
        """D_1, …, D_L and S_1, …, S_L; unless it `saves`, no S, and all D but D_L may be lost.

        keys   (L, r, 2), that of each layer's input; None: nothing is dropped
        below  elements whose lane is below are kept
        """
        rows, columns, values = P
        layers, (r, n, h) = len(M1), D.shape
        D, H0, M1 = D.contiguous(), H0.contiguous(), M1.contiguous()
        M2, keys = (None if one is None else one.contiguous() for one in (M2, keys))
        own = [_like(D) for _ in range(layers if saves else min(layers, 2))]
        outputs = [own[(l - layers) % len(own)] for l in range(layers)]
        sums = [_like(D) for _ in range(layers if saves else 0)]
        for i, value in enumerate(values.expand(r, -1)):
            given = _Forward(
                n=n, h=h, layers=layers, replicas=r, rows=rows, columns=columns, values=value,
                H=D[i], H0=H0[i], M1=M1[:, i:], M2=None if M2 is None else M2[:, i:],
                keys=None if keys is None else keys[:, i:], D=[one[i] for one in outputs],
                S=[one[i] for one in sums], alpha=alpha, skip=skip, below=below,
            )  # fmt: skip
            self.functions.forward_layers(byref(given), torch.get_num_threads())
        return outputs, sums

    def backward_layers(
        self, PT: Entries, dZ: Tensor, H0: Tensor, M1: Tensor, M2: Tensor | None,
        D: Sequence[Tensor], S: Sequence[Tensor], *, alpha: float, skip: float,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:  # fmt: skip
        """dZ_L, which is overwritten → the gradients of D_0, H0, M1 and M2; PT is P̃'s transpose."""
        rows, columns, values = PT
        layers, (r, n, h) = len(M1), dZ.shape
        M1T, M2T = M1.mT.contiguous(), None if M2 is None else M2.mT.contiguous()
        H0 = H0.contiguous()
        dZ, dH0, dS = dZ.contiguous(), _like(H0).zero_(), _like(dZ[0])
        dM1, dM2 = _like(M1), None if M2 is None else _like(M2)
        parts = dS.new_empty((1 if M2 is None else 2) * self.functions.chunks(n), h, h)
        for i, value in enumerate(values.expand(r, -1)):
            given = _Backward(
                n=n, h=h, layers=layers, replicas=r, rows=rows, columns=columns, values=value,
                H0=H0[i], M1T=M1T[:, i:], M2T=None if M2T is None else M2T[:, i:],
                D=[one[i] for one in D], S=[one[i] for one in S], alpha=alpha, skip=skip,
                dZ=dZ[i], dS=dS, dH0=dH0[i], parts=parts, dM1=dM1[:, i:],
                dM2=None if dM2 is None else dM2[:, i:],
            )  # fmt: skip
            self.functions.backward_layers(byref(given), torch.get_num_threads())
        return dZ, dH0, dM1, dM2


def _like(H: Tensor) -> Tensor:
    return torch.empty_like(H, memory_format=torch.contiguous_format)


@cache
def library() -> Library | None:
    """The library, which is made where there is none yet; None where it cannot be."""
    asked = os.environ.get("GCNII_CC")
    if asked == "" or (sys.platform, platform.machine()) != ("linux", "x86_64"):
        return None
    if (compiler := shutil.which(asked or "cc")) is None:
        if asked:
            notice(f"GCNII_CC is {asked}, which is no program here; {REMEDY}")
        return None
    try:
        if folder := _folder():
            path = folder / f"{_name(compiler)}.so"
            if not path.exists():
                with atomic_write(path) as temporary:
                    _compile(compiler, temporary)
            return Library(path)
        with tempfile.TemporaryDirectory(prefix="gcnii-") as own:
            _compile(compiler, path := Path(own) / "layer.so")
            return Library(path)  # which stays when the file is gone
    except (OSError, subprocess.SubprocessError) as error:
        if asked:  # nobody asked for cc, which may be there without what it needs
            said = (getattr(error, "stderr", None) or b"").decode(errors="replace").splitlines()
            first = one_line((said or [str(error)])[0])
            notice(f"{compiler} cannot compile layers ({first}); {REMEDY}")
    return None


def _folder() -> Path | None:
    """Where libraries are kept; None where others could put one of theirs, or we can put none."""
    from platformdirs import user_cache_path

    folder = user_cache_path("gcnii") / "compiled"
    with suppress(OSError):
        folder.mkdir(0o700, parents=True, exist_ok=True)
        found = folder.lstat()
        others = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        if found.st_uid == os.geteuid() and not others and os.access(folder, os.W_OK):
            return folder
    return None


def _name(compiler: str) -> str:
    """Of all that decides what is compiled: the source, the compiler and the processor."""
    processor = Path("/proc/cpuinfo").read_text().splitlines()
    flags = next((line for line in processor if line.startswith("flags")), "")
    made = Path(compiler).stat()
    known = (SOURCE.read_text(), FLAGS, compiler, made.st_size, made.st_mtime_ns, flags)
    return hashlib.sha256(repr(known).encode()).hexdigest()[:32]


def _compile(compiler: str, path: Path) -> None:
    command = [compiler, *FLAGS, "-o", str(path), str(SOURCE)]
    subprocess.run(
        command, check=True, timeout=LONGEST, stdin=subprocess.DEVNULL, capture_output=True
    )
