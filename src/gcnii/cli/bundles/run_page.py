"""gcnii report run: the page of a trained model."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from gcnii.cli.bundles.evaluate import TrainingGraph
from gcnii.cli.bundles.predict import Bundle, load_asked
from gcnii.cli.options import (
    Device,
    Json,
    Offline,
    Overwrite,
    Quiet,
    print_json,
    refuse_unwritable,
)
from gcnii.cli.terminal import counting_bar
from gcnii.errors import InputError
from gcnii.files import refuse_replacing
from gcnii.inference.page import steps, write_page
from gcnii.report.html import is_page
from gcnii.results.bundle import open_bundle

Page = Annotated[
    Path | None, Parameter(help="An .html file; default: BUNDLE.html, beside the bundle.")
]


def run(
    bundle: Bundle,
    /,
    *,
    out: Page = None,
    overwrite: Overwrite = False,
    graph: TrainingGraph = None,
    device: Device = "auto",
    json: Json = False,
    quiet: Quiet = False,
    offline: Offline = False,
) -> None:
    """Write one HTML page of a trained model: scores, curves, confusions, calibration, nodes."""
    if quiet:
        warnings.simplefilter("ignore")
    result = open_bundle(bundle, curves=True)
    path = _path(bundle, out)
    inputs = [bundle, graph, result.origin.source]
    refuse_replacing(path, is_page, inputs=inputs, overwrite=overwrite)
    data = load_asked(result, bundle, graph, offline)
    with counting_bar(f"page of {data.name}", steps(result), hidden=quiet) as show:
        write_page(result, path, data, device, show, overwrite=overwrite)
    if json:
        print_json({"bundle": str(bundle), "graph": data.name, "out": str(path)})
    else:
        print(path)


def _path(bundle: Path, out: Path | None) -> Path:
    """Where the page goes; never into a bundle, which holds its own files alone."""
    folder = bundle.resolve()
    named = folder if bundle.name in ("", "..") else bundle
    path = out or named.parent / f"{named.name}.html"
    if path.suffix != ".html":
        raise InputError(f"a page must end in .html, got {path.name}")
    if path.is_dir():
        raise InputError(f"--out {path} is a folder; name the page in it")
    if path.resolve().parent == folder:
        raise InputError(
            f"{path} is inside the bundle, which holds its own files alone; name another folder"
        )
    refuse_unwritable(path.parent)
    return path
