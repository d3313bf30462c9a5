"""gcnii forecast: is the depth that one training recommends a good one?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from gcnii.cli.options import Device, Json, print_json, refuse_unwritable

# torch takes seconds to import; --help is answered without it: hence imports below.
if TYPE_CHECKING:
    from gcnii.files import Document

Names = Annotated[str, Parameter(help="Graphs to test it on; default: all.")]
Results = Annotated[
    Path, Parameter(help="The folder with cells/; forecast/CASE.json is written there.")
]
Keep = Annotated[
    Path, Parameter(help="A folder for trained networks; those in it are not trained again.")
]


def forecast(
    *cases: Names,
    device: Device = "auto",
    results: Results = Path("results"),
    keep: Keep = Path("runs/forecast"),
    json: Json = False,
) -> None:
    """Test a depth forecast from one training against GCNII trained at every depth."""
    records = _measure(cases, device, results, keep)
    if json:
        print_json(records)
    else:
        _print(records)


def _measure(names: Sequence[str], device: str, results: Path, keep: Path) -> list[Document]:
    from gcnii.cli.terminal import counting_bar
    from gcnii.paper.forecast import CASES, find_case, measure, steps, write
    from gcnii.train.hardware import choose_device

    cases = [find_case(name) for name in names or CASES]
    where, records = choose_device(device), []
    refuse_unwritable(results, "--results")
    refuse_unwritable(keep, "--keep")
    for case in cases:
        with counting_bar(case.name, steps(case)) as show:
            records.append(measure(case, results, keep, where, show))
        write(results / "forecast", records[-1])
    return records


def _print(records: Sequence[Document]) -> None:
    from rich.markdown import Markdown

    from gcnii.cli.terminal import table_console
    from gcnii.paper.report.forecast_tables import forecast_tables

    console, text = table_console(), forecast_tables(records)
    if console.is_terminal:
        console.print(Markdown(text))
    else:
        print(text)
