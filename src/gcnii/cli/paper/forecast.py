"""gcnii forecast: is the depth that one training recommends a good one?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from gcnii.cli.options import Device, Json, print_json, refuse_unwritable


def forecast(
    *cases: Annotated[str, Parameter(help="Graphs to test it on; by default all.")],
    device: Device = "auto",
    results: Annotated[
        Path, Parameter(help="The folder with cells/; forecast/CASE.json is written below it.")
    ] = Path("results"),
    keep: Annotated[
        Path, Parameter(help="A folder for trained networks; those in it are not trained again.")
    ] = Path("runs/forecast"),
    json: Json = False,
) -> None:
    """Hold the depth that the doctor recommends against GCNII trained at every depth."""
    from rich.markdown import Markdown

    from gcnii.cli.console import table_console
    from gcnii.cli.progress import counting_bar
    from gcnii.paper.forecast import CASES, find_case, measure, steps, write
    from gcnii.paper.report.forecast_tables import forecast_tables
    from gcnii.train.hardware import choose_device

    chosen = [find_case(name) for name in cases or CASES]
    where, records = choose_device(device), []
    refuse_unwritable(results, "--results")
    refuse_unwritable(keep, "--keep")
    for case in chosen:
        with counting_bar(case.name, steps(case)) as show:
            records.append(measure(case, results, keep, where, show))
        write(results / "forecast", records[-1])
    console = table_console()
    if json:
        print_json(records)
    elif console.is_terminal:
        console.print(Markdown(forecast_tables(records)))
    else:
        print(forecast_tables(records))
