"""gcnii reproduce defaults: the default for graphs without published settings, and its study."""

from __future__ import annotations

import sys
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from gcnii.cli.options import Device, Json, print_json, refuse_below_one, refuse_unwritable
from gcnii.errors import InputError
from gcnii_paper.cli.options import Jobs, refuse_not_a_folder, says_what_is_kept

# torch takes seconds to import; --help and wrong usage are answered without it: hence imports below
if TYPE_CHECKING:
    from gcnii_paper.defaults.choose import Study
    from gcnii_paper.defaults.records import Records

Only = Annotated[
    str, Parameter(show_default=False, help="Only graphs with this text in their name.")
]
Data = Annotated[
    Path | None,
    Parameter(
        help="A folder with facebook.npz, humango.npz, cora-ml.npz and twitch-engb.npz, which the "
        "catalog does not have; without it they are not measured."
    ),
]
Minutes = Annotated[
    float, Parameter(show_default=False, help="Begin no training after this time; default: none.")
]
Out = Annotated[
    Path, Parameter(help="A folder for GRAPH.json; what it holds is not measured again.")
]


def defaults(
    *,
    only: Only = "",
    data: Data = None,
    device: Device = "auto",
    jobs: Jobs = 1,
    minutes: Minutes = inf,
    out: Out = Path("results/defaults"),
    json: Json = False,
) -> None:
    """Measure what is missing of the study behind the default, choose again, and print it."""
    refuse_below_one("--jobs", jobs)
    refuse_unwritable(out)
    if data:
        refuse_not_a_folder(data, "a download of these files")
    records = _records(only, out, device)
    from gcnii_paper.defaults.choose import Study
    from gcnii_paper.defaults.measure import measure

    told = partial(print, file=sys.stderr, flush=True)
    with says_what_is_kept(f"{out} keeps every finished model"):
        measure(records, word=only, data=data, device=device, jobs=jobs, minutes=minutes, told=told)
    _print(Study.of(records), only, json)


def _records(only: str, out: Path, device: str) -> Records:
    from gcnii.train.hardware import choose_device
    from gcnii_paper.defaults.candidates import GRAPHS
    from gcnii_paper.defaults.records import Records

    if not any(only in name for name in GRAPHS):
        raise InputError(f"no graph has {only!r} in its name; known: {', '.join(GRAPHS)}")
    choose_device(device)  # refuses an unknown one before a graph is loaded
    return Records(out)


def _print(study: Study, only: str, as_json: bool) -> None:
    from rich.markdown import Markdown

    from gcnii.cli.terminal import table_console
    from gcnii_paper.report.defaults_page import (
        as_document,
        chosen_table,
        means_sentence,
        rows_table,
    )

    if as_json:
        print_json(as_document(study, only))
        return
    rows = [row for row in study.rows if only in row.graph]
    text = "\n".join([rows_table(rows), means_sentence(study), chosen_table(study)])
    console = table_console()
    if console.is_terminal:
        console.print(Markdown(text))
    else:
        print(text, end="")
