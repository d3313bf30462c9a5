"""gcnii reproduce search, adopt and adopt-record: settings that nobody has published."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from gcnii.cli.options import Device, refuse_below_one, refuse_unwritable
from gcnii.errors import InputError, notice
from gcnii.files import Document
from gcnii_paper.cli.options import Jobs, refuse_not_a_folder, says_what_is_kept

# torch takes seconds to import; --help and wrong usage are answered without it: hence imports below
if TYPE_CHECKING:
    from gcnii_paper.search.search import Search

Name = Annotated[
    str, Parameter(help="A cell without published settings, or a text in the names of several.")
]
Trials = Annotated[int, Parameter(help="Number of settings to try, including those tried before.")]
Budget = Annotated[int | None, Parameter(show=False)]  # what --trials was called
TriesFolder = Annotated[Path, Parameter(help="A folder for NAME.json with every try.")]
Searches = Annotated[Path, Parameter(help="The folder that `search` wrote.")]
Adopted = Annotated[
    Path | None, Parameter(help="The file to add them to; default: the one that the cells read.")
]

Studies = Annotated[Path, Parameter(help="A study.json of `gcnii tune`, or its folder.")]
RecordFile = Annotated[
    Path | None,
    Parameter(help="The file to add them to; default: the one that --preset record reads."),
]
StudiesFolder = Annotated[Path, Parameter(help="A folder for copies of the studies.")]


def search(
    name: Name,
    /,
    *,
    trials: Trials = 30,
    budget: Budget = None,
    device: Device = "auto",
    jobs: Jobs = 1,
    out: TriesFolder = Path("results/search"),
) -> None:
    """Search settings for cells without published ones, by validation alone."""
    if budget is not None:
        notice(f"--budget is called --trials now; use --trials {budget}")
        trials = budget
    refuse_below_one("--trials", trials)
    refuse_below_one("--jobs", jobs)
    refuse_unwritable(out)
    searches = _choose(name, device)
    with says_what_is_kept(f"{out} keeps every finished try"):
        for record in _records(searches, out, trials=trials, device=device, jobs=jobs):
            print(f"{record['search']}: {_outcome(record)}")


def _choose(name: str, device: str) -> list[Search]:
    from gcnii.train.hardware import choose_device
    from gcnii.tuning.tune import require_optuna
    from gcnii_paper.search.spaces import choose_searches

    require_optuna("reproduce search")
    searches = choose_searches(name)
    choose_device(device)  # refuses an unknown one before a graph is fetched
    return searches


def _records(
    searches: Sequence[Search], folder: Path, *, trials: int, device: str, jobs: int
) -> Iterator[Document]:
    from gcnii.cli.terminal import counting_bar
    from gcnii.parallel import run_parallel
    from gcnii_paper.search.run import run_search

    if jobs == 1:
        for chosen in searches:
            with counting_bar(chosen.name, trials) as show:
                record = run_search(chosen, folder, trials, device, show)
            yield record
        return
    one = partial(run_search, folder=folder, trials=trials, device=device)
    with counting_bar("searches", len(searches)) as show:
        for chosen, record in run_parallel(one, searches, jobs):
            show(chosen.name)
            yield record


def _outcome(record: Document) -> str:
    if not record["winner"]:
        return "no winner, every try failed"
    return f"{json.dumps(record['winner'])}, best of {record['budget']} by validation"


def adopt(folder: Searches = Path("results/search"), /, *, out: Adopted = None) -> None:
    """Use the best settings of searches with enough tries in their cells; keep all others."""
    refuse_not_a_folder(folder, "gcnii reproduce search")
    from gcnii_paper.search.record import adopt as adopt_winners
    from gcnii_paper.tables.searched import ENOUGH, FILE

    file = out or FILE
    found, adopted = adopt_winners(folder, file)
    print(f"{found} winners of at least {ENOUGH} tries adopted; {file} holds {adopted}")


def adopt_record(
    *studies: Studies,
    out: RecordFile = None,
    keep: StudiesFolder = Path("results/beyond/studies"),
) -> None:
    """Make the winners of studies the record settings of their data sets.

    Give all studies of a data set at once: the best by validation wins, and all their settings
    count as tried.
    """
    if not studies:
        raise InputError("give at least one study.json that `gcnii tune` wrote, or its folder")
    from gcnii.train.presets import FILE
    from gcnii_paper.search.studies import adopt_studies

    file = out or FILE
    refuse_unwritable(keep, "--keep")
    refuse_unwritable(file.parent)
    for name, record in adopt_studies(studies, file, keep).items():
        best = f"by validation ({100 * record.val:.1f}) the best of {record.tried} settings"
        print(f"{name}: {record.model}, {best}")
    print(f"{file} holds them; measure them with: gcnii reproduce beyond")
