"""gcnii bench: speed and memory, against PyG and the authors' layer, in one run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from gcnii.cli.options import Device, Json, print_json, refuse_below_one, refuse_unwritable
from gcnii.errors import InputError
from gcnii.files import Document
from gcnii.results.provenance import commit
from gcnii_paper.bench.cases import CASES, BenchCase, find_case

# torch takes seconds to import; --help and wrong usage are answered without it: imports below.

SCALE = "scale"
Names = Annotated[
    str,
    Parameter(
        help=f"What to measure: {', '.join(CASES)}; or {SCALE}: growth in size, one graph over "
        "several processes, and plans beside what was measured. Default: cora-1."
    ),
]


def bench(
    *cases: Names,
    device: Device = "auto",
    rounds: int | None = None,
    scale: float = 1.0,
    json: Json = False,
    out: Path | None = None,
) -> None:
    """Measure an epoch's time and peak memory, here and elsewhere, beside the least possible.

    Parameters
    ----------
    rounds
        Number of times that each implementation is timed; default: the case's own.
    scale
        Share of the nodes and edges of a drawn graph, to try a case; such as 0.001.
    out
        A folder for CASE-DEVICE.json, of committed code only; default: write no file.
    """
    names = [name for name in cases or ("cora-1",) if name != SCALE]
    chosen = [find_case(name).scaled(scale) for name in names]
    refuse_below_one(rounds=rounds)
    if out:
        refuse_unwritable(out)
        _refuse_unknown_code()
    records = []
    for record in chain(_measure(chosen, device, rounds), _scale(device) if SCALE in cases else ()):
        records.append(record)
        _report(record, out, not json)
    if json:
        print_json(records)


def _refuse_unknown_code() -> None:
    """Refuse a record of code that nobody could look up or measure again."""
    match commit():
        case None:
            raise InputError(
                "--out needs the commit that is measured, and this code has none: run it in a "
                "clone or in an unpacked `git archive`, or keep the numbers by --json instead"
            )
        case found if found.endswith("-dirty"):
            raise InputError(
                f"--out needs code that is committed, and files in src/ differ from "
                f"{found.removesuffix('-dirty')}: commit them first, or leave --out away"
            )


def _measure(cases: Sequence[BenchCase], device: str, rounds: int | None) -> Iterator[Document]:
    from gcnii.cli.terminal import counting_bar
    from gcnii.train.hardware import choose_device
    from gcnii_paper.bench.measure import document, measure, steps

    where = choose_device(device)
    for case in cases:
        case.lines(where.type)  # refuses a case for another device before the first is measured
    for case in cases:
        turns = rounds or case.rounds
        with counting_bar(case.name, steps(case, where, turns)) as show:
            record = document(measure(case, where, turns, show))
        yield record


def _scale(device: str) -> Iterator[Document]:
    from gcnii.cli.terminal import counting_bar
    from gcnii.train.hardware import choose_device
    from gcnii_paper.bench.scale import measure, steps

    where = choose_device(device)
    with counting_bar(SCALE, steps(where)) as show:
        record = measure(where, show)
    yield record


def _report(record: Document, folder: Path | None, as_table: bool) -> None:
    from gcnii.cli.terminal import table_console
    from gcnii_paper.bench.measure import write
    from gcnii_paper.report.performance import bench_table
    from gcnii_paper.report.scale import terminal_tables

    if folder:
        write(folder, record)
    if as_table:
        own = record["case"] == SCALE
        for table in terminal_tables(record) if own else [bench_table(record)]:
            table_console().print(table)
