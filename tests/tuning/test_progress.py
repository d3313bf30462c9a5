"""The bar shows how far a study is, and the best so far."""

import re
import time
from types import SimpleNamespace

import pytest
from support import knobs
from support.small_studies import QUICK

import gcnii
from gcnii.errors import InputError
from gcnii.results.fit import Session
from gcnii.tuning.question import Question
from gcnii.tuning.study import Tuner

SPENT = SimpleNamespace(study=None, seconds=5.0)
SMALL = {"models": ["gcn"], "layers": 2, **QUICK}


def test_the_bar_counts_settings_and_names_the_best(graph, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    found = gcnii.tune(graph, trials=3, verbose=True, **SMALL)
    said = capsys.readouterr()
    assert said.out == ""
    assert "tuning csbm" in said.err
    assert "3/3" in said.err
    assert found.winner.model == "gcn"


def test_without_a_terminal_nothing_is_shown(graph, capsys):
    gcnii.tune(graph, trials=2, **SMALL)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("budget", "trials", "shown"), [(None, 4, r"2/4"), (10.0, None, r"50%"), (10.0, 4, r"2/4")]
)
def test_it_is_a_bar_of_trials_or_else_of_time(budget, trials, shown, capsys, monkeypatch, tuned):
    from gcnii.tuning import study

    best = list(tuned.trials[:2])
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(knobs.BAR_TRIALS, lambda study: best)
    with study.study_bar(tuned.question, SPENT, budget, trials, True):
        pass
    said = capsys.readouterr().err
    assert re.search(shown, said)
    score = f"{100 * best[0].score:.1f}"
    assert f"2 settings, best {score} ({best[0].model})" in said


def test_a_storage_that_is_away_for_a_moment_does_not_end_the_bar(capsys, monkeypatch, tuned):
    from gcnii.tuning import study

    def fail(study):
        raise OSError

    monkeypatch.setattr(study, "REFRESH", 0.01)
    monkeypatch.setattr(knobs.BAR_TRIALS, fail)
    with study.study_bar(tuned.question, SPENT, 10.0, None, True) as show:
        show("final training: gcn")
    assert "tuning csbm" in capsys.readouterr().err


def test_without_a_terminal_a_command_says_now_and_then_how_far_it_is(
    line_of_progress, monkeypatch, tuned
):
    from gcnii.tuning import study

    best = tuned.trials[0]
    first = f"gcnii: tuning csbm: 1 settings, best {100 * best.score:.1f} ({best.model}); 5 of 10 s"
    last = "gcnii: tuning csbm: final training: gcn; 5 of 10 s"
    monkeypatch.setattr(knobs.BAR_TRIALS, lambda study: [best])
    with study.study_bar(tuned.question, SPENT, 10.0, None, None, True) as show:
        line_of_progress(first)
        show("final training: gcn")
        assert set(line_of_progress(last)) == {first, last}


def test_a_budget_that_is_over_before_the_search_is_refused(graph, tmp_path):
    question = Question.of(graph, ["gcn"], 2)
    tuner = Tuner.of(question, out=tmp_path / "s", session=Session(device="cpu"))
    with pytest.raises(InputError, match=r"budget of 10 s was over before the search began: \d+ s"):
        tuner.run(10.0, None, began=time.time() - 12)
