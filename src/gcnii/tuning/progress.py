"""The progress bar of a study: its time or its trials, and the best so far."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import MofNCompleteColumn, TaskProgressColumn

from gcnii.results.fit import draws
from gcnii.targets.scores import percent
from gcnii.train.callbacks import lines_without_bar, make_progress
from gcnii.tuning.trials import ranked, trials_of

if TYPE_CHECKING:
    from optuna.study import Study as OptunaStudy

REFRESH = 0.5  # seconds
Show = Callable[[str], None]


@contextmanager
def study_bar(
    name: str,
    study: OptunaStudy,
    seconds: Callable[[], float],
    budget: float | None,
    trials: int | None,
    verbose: bool | None,
    lines: bool = False,
) -> Iterator[Show]:
    """A bar of the trials, or of the seconds; and a function that says what is done now.

    lines  whether to print plain lines now and then where there is no bar
    """
    title, said, stop = f"tuning {name}", {"now": ""}, threading.Event()

    def found() -> tuple[int, str]:
        done = trials_of(study)
        best = ranked(done)
        leader = f", best {percent(best[0].score)} ({best[0].model})" if best else ""
        return len(done), f"{len(done)} settings{leader}"

    def line() -> str:
        whole = "" if budget is None else f" of {budget:.0f}"
        return f"{title}: {said['now'] or found()[1]}; {seconds():.0f}{whole} s"

    if not draws(verbose):
        with lines_without_bar(line, hidden=not lines):
            yield lambda words: said.update(now=words)
        return
    count = TaskProgressColumn() if trials is None else MofNCompleteColumn()
    longest = "100%" if trials is None else f"{trials}/{trials}"
    with make_progress(Console(stderr=True), title, count, longest) as progress:
        task = progress.add_task(title, total=trials or budget, now="")

        def look() -> None:
            done, text = found()
            completed = done if trials else min(seconds(), budget or 0.0)
            progress.update(task, completed=completed, now=said["now"] or text)

        def watch() -> None:
            while not stop.wait(REFRESH):
                with suppress(Exception):  # the database may be away for a moment
                    look()

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield lambda words: said.update(now=words)
        finally:
            stop.set()
            thread.join()
            with suppress(Exception):
                look()
