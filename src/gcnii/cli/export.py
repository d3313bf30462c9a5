"""gcnii export: a trained model as a file that other programs run."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from gcnii.cli.options import SWITCH, Json, Overwrite, Quiet, print_json, refuse_unwritable
from gcnii.cli.predict import Bundle
from gcnii.inference.export import Inputs, export_onnx
from gcnii.results.bundle import open_bundle


def export(
    bundle: Bundle,
    /,
    *,
    onnx: Path,
    inputs: Annotated[Inputs, Parameter(name="--inputs")] = "edges",
    networks: Annotated[bool, SWITCH] = False,
    member: str | None = None,
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write the model as an ONNX file that gives the probabilities of `gcnii predict`.

    Parameters
    ----------
    onnx
        An .onnx file.
    inputs
        Whether the file takes edges, or the entries of the propagation matrix P.
    networks
        Of an ensemble, export the networks alone, their weights scaled to 1.
    member
        Export one member of an ensemble, by its name.
    """
    if quiet:
        warnings.simplefilter("ignore")
    refuse_unwritable(onnx.parent, "--onnx")
    result = open_bundle(bundle)
    result = result if member is None else result.member(member)
    path = export_onnx(result, onnx, inputs=inputs, networks=networks, overwrite=overwrite)
    size = path.stat().st_size
    if json:
        print_json({"bundle": str(bundle), "onnx": str(path), "inputs": inputs, "bytes": size})
    else:
        print(f"{result.title}: {path} ({size / 1e6:.1f} MB)")
