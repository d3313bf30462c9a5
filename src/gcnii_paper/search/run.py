"""Running a search: a study of `tuning` in memory, and a document that lasts and is shared.

Before the first batch and after each, a process writes what it has finished, and learns what others
have.  There is no lock: of two documents written within the same milliseconds the earlier is lost,
and its tries are written again after the next batch.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from optuna import create_study
from optuna.study import Study as OptunaStudy

from gcnii.files import Document, write_document
from gcnii.results.provenance import commit, versions
from gcnii.train.hardware import choose_device, device_name
from gcnii.train.presets import Settings
from gcnii.tuning.proposals import quiet
from gcnii.tuning.trials import Trial, trials_of
from gcnii.tuning.worker import Limits
from gcnii.tuning.worker import search as train_trials
from gcnii_paper.search.proposals import SETTINGS, PointProposer, finished_trial
from gcnii_paper.search.record import GIVEN_UP, SEEDS, make_record, read_tries
from gcnii_paper.search.search import Search

ROUND = 10  # tries that a GPU is given at once; the next ones are proposed by what they taught


def run_search(
    search: Search,
    folder: Path,
    trials: int,
    device: str = "auto",
    on_try: Callable[[str], None] = lambda words: None,
) -> Document:
    """Train until the search's document in the folder has `trials` tries; return the document.

    Tries of earlier calls and of other processes count.  `on_try` is called with the settings of
    each try that is done, also of those that are there already.
    """
    quiet()
    commit()  # recorded with each try; later it might be another one
    proposer = PointProposer(search)
    study = create_study(direction="maximize", sampler=proposer.sampler)
    exchange = Exchange(search, study, folder / search.file, device, on_try)
    tries, most = exchange(), min(trials, search.size)
    for enough in (*range(ROUND, most, ROUND), most):
        if len(tries) < enough:
            limits = Limits(enough)
            train_trials(proposer.question, study, limits, device, None, exchange, proposer)
            tries = exchange()
    return make_record(search.about, tries)


class Exchange:
    """Between a study and a document: called before the first batch and after each.

    on_try  called with the settings of each try that is new in the document
    """

    def __init__(
        self,
        search: Search,
        study: OptunaStudy,
        path: Path,
        device: str,
        on_try: Callable[[str], None],
    ):
        self.search, self.study, self.path, self.on_try = search, study, path, on_try
        self.device = device_name(choose_device(device))
        self.own: list[Settings] = []  # of tries that were trained here
        self.shown = 0

    def __call__(self) -> list[Document]:
        """Write what is not in the document, learn what is not in the study; all tries."""
        tries = read_tries(self.path, self.search.about)
        self._write(tries)
        known = [trial.user_attrs.get(SETTINGS) for trial in self.study.get_trials(deepcopy=False)]
        for done in tries:
            if done["settings"] not in known:
                self.study.add_trial(finished_trial(self.search, done))
        for done in tries[self.shown :]:
            self.on_try(", ".join(f"{name} {value}" for name, value in done["settings"].items()))
        self.shown = len(tries)
        return tries

    def _write(self, tries: list[Document]) -> None:
        """Add what was trained here to the tries and to the document."""
        written, before = [done["settings"] for done in tries], len(tries)
        frozen = self.study.get_trials(deepcopy=False)
        for trial in trials_of(self.study):
            settings = frozen[trial.number].user_attrs[SETTINGS]
            if settings not in written:
                tries.append(self._document(trial, settings))
            elif settings not in self.own:
                # Another process has tried the same meanwhile: from now on propose other points.
                self.study.sampler.reseed_rng()
            self.own.append(settings)
        if len(tries) > before:
            write_document(self.path, make_record(self.search.about, tries))

    def _document(self, trial: Trial, settings: Settings) -> Document:
        nothing: list[float | None] = [None] * SEEDS
        lost = trial.outcome == "lost"
        return {
            "settings": settings,
            "val": nothing if lost else list(trial.val),
            "val_loss": nothing if lost else list(trial.val_loss),
            **({"outcome": GIVEN_UP} if trial.outcome == GIVEN_UP else {}),
            "seconds": trial.seconds,
            "device": self.device,
            "versions": versions(),
            "commit": commit(),
        }
