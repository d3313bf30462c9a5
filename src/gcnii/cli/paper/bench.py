"""gcnii bench: speed and memory, against PyG and the authors' manner, in one run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from gcnii.cli.options import Device, Json, print_json, refuse_unwritable
from gcnii.errors import InputError
from gcnii.paper.bench.cases import CASES, find_case

Name = Annotated[str, Parameter(help=f"What to measure, by default cora-1: {', '.join(CASES)}.")]


def bench(
    *cases: Name,
    device: Device = "auto",
    rounds: Annotated[
        int | None, Parameter(help="Give each code so many turns; by default as the case says.")
    ] = None,
    json: Json = False,
    out: Annotated[
        Path | None, Parameter(help="A folder for CASE-DEVICE.json; by default nothing is written.")
    ] = None,
) -> None:
    """Measure an epoch's time and peak memory, here and in other code, beside the least time there
    can be.
    """
    chosen = [find_case(name) for name in cases or ("cora-1",)]
    if rounds is not None and rounds < 1:
        raise InputError(f"--rounds must be at least 1, got {rounds}")
    if out:
        refuse_unwritable(out)
    # torch takes seconds to import, which nobody waits for who asks for help or names no case.
    from gcnii.cli.console import table_console
    from gcnii.cli.progress import counting_bar
    from gcnii.paper.bench.measure import measure, steps
    from gcnii.paper.bench.record import document, write
    from gcnii.paper.report.speed import bench_table
    from gcnii.train.hardware import choose_device

    where, records = choose_device(device), []
    for case in chosen:
        case.lines(where.type)  # one that makes no sense here is told before the first is measured
    for case in chosen:
        turns = rounds or case.rounds
        with counting_bar(case.name, steps(case, where, turns)) as show:
            records.append(document(measure(case, where, turns, show)))
        if out:
            write(out, records[-1])
        if not json:
            table_console().print(bench_table(records[-1]))
    if json:
        print_json(records)
