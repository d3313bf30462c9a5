"""The progress bar: in terminals and notebooks, narrow or wide, and nowhere else."""

import builtins
import contextlib
import io
import sys
from functools import partial
from types import SimpleNamespace

import pytest
from rich.console import Console

import gcnii
from gcnii import fit
from gcnii.train import callbacks
from gcnii.train.callbacks import EpochMeasures, EpochReport, training_bar

TITLE = "figure2/citeseer-gcn-with-identity-mapping/64, seeds 0 to 9"
SMALL = {"layers": 2, "width": 8, "epochs": 4, "device": "cpu"}


@pytest.fixture(scope="module")
def graph():
    return gcnii.load("csbm", n=60)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def cell(monkeypatch):
    """The pictures that the output of a notebook's cell shows, one after the other."""
    shown = []

    def display(picture, *, raw, display_id):
        shown.append(picture["text/plain"])
        return SimpleNamespace(update=lambda new, raw: shown.append(new["text/plain"]))

    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setattr(builtins, "get_ipython", lambda: shell, raising=False)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    monkeypatch.setattr(callbacks, "REDRAW", 0)
    return shown


def report(epoch):
    measures = dict.fromkeys(range(10), EpochMeasures(train_loss=0.1, val_loss=0.2, val=0.8))
    return EpochReport(epoch, runs_done=0, runs=10, measures=measures)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_training_bar_keeps_percentage_and_time_and_drops_the_losses_first(width, monkeypatch):
    file = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    console = partial(Console, file=file, width=width, force_terminal=True, no_color=True)
    monkeypatch.setattr(callbacks, "Console", console)
    with training_bar(TITLE, 1500) as show:
        show(report(749))
    line = next(line for line in reversed(file.getvalue().split("\n")) if "━" in line)
    assert "figure2/citeseer-gcn" in line
    assert " 50% -:--:--" in line
    assert ("train 0.100" in line) == (width == 120)


def test_in_a_terminal_fit_shows_a_bar_and_the_result_on_stderr(graph, monkeypatch, capsys):
    stderr = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", stderr)
    result = fit(graph, **SMALL)
    assert "gcnii on csbm" in stderr.getvalue()
    assert "100%" in stderr.getvalue()
    assert stderr.getvalue().endswith(f"{result!r}\n")
    assert capsys.readouterr().out == ""


def test_a_terminal_stays_empty_if_nothing_is_to_be_shown(graph, monkeypatch):
    stderr = Terminal()
    monkeypatch.setattr(sys, "stderr", stderr)
    fit(graph, verbose=False, **SMALL)
    assert stderr.getvalue() == ""


def test_a_pipe_stays_empty_even_where_colours_are_forced(graph, monkeypatch, capfd):
    monkeypatch.setenv("FORCE_COLOR", "1")
    fit(graph, **SMALL)
    assert capfd.readouterr() == ("", "")


def test_asked_for_in_a_pipe_the_bar_is_one_line_without_control_characters(graph, capsys):
    result = fit(graph, verbose=True, **SMALL)
    out, err = capsys.readouterr()
    bar, line = err.splitlines()
    assert bar.startswith("gcnii on csbm ━")
    assert "100%" in bar
    assert line == repr(result)
    assert "\x1b" not in err
    assert out == ""


def test_in_a_notebook_the_bar_is_redrawn_in_its_place(graph, cell, capsys):
    result = fit(graph, **SMALL)
    bars = [picture.split("%")[0].split() for picture in cell[1:]]  # the first holds no task yet
    assert [bar[-1] for bar in bars] == ["0", "25", "50", "75", "100", "100"]
    assert all(bar[:3] == ["gcnii", "on", "csbm"] for bar in bars)
    assert capsys.readouterr() == ("", f"{result!r}\n")


def test_a_notebooks_bar_is_not_redrawn_at_every_epoch(graph, cell, monkeypatch):
    monkeypatch.setattr(callbacks, "REDRAW", 60)
    fit(graph, **SMALL)
    assert len(cell) == 3  # empty, at the start and at the end


def test_a_process_without_stderr_trains_in_silence(graph, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stderr", None)
    for verbose in (None, True):
        fit(graph, verbose=verbose, **SMALL)
    assert capsys.readouterr().out == ""


def test_the_bar_ends_when_training_fails(graph, monkeypatch):
    ended = []

    @contextlib.contextmanager
    def bar(title, epochs):
        try:
            yield lambda now: None
        finally:
            ended.append(title)

    monkeypatch.setattr("gcnii.results.fit.training_bar", bar)
    with pytest.raises(gcnii.Diverged):
        fit(graph, verbose=True, **SMALL | {"lr": 1e30})
    assert ended == ["gcnii on csbm"]
