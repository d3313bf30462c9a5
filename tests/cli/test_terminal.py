"""In a narrow terminal, progress bars keep the essential columns."""

import io
from functools import partial

import pytest
from rich.console import Console

from gcnii.cli import terminal as progress
from gcnii.cli.terminal import counting_bar, training_bar
from gcnii.train.fit import EpochReport

TITLE = "figure2/citeseer-gcn-with-identity-mapping/64, seeds 0 to 9"


@pytest.fixture
def terminal(monkeypatch):
    """Number of columns → what is written to a terminal of that width."""

    def of(width):
        file = io.StringIO()
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr(
            progress,
            "Console",
            partial(Console, file=file, width=width, force_terminal=True, no_color=True),
        )
        return file

    return of


def last_line(file):
    return next(line for line in reversed(file.getvalue().split("\n")) if "━" in line)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_training_bar_keeps_percentage_and_time_and_drops_the_losses_first(width, terminal):
    file = terminal(width)
    with training_bar(TITLE, 1500) as show:
        show(
            EpochReport(
                epoch=749, runs_done=0, runs_now=10, runs=10, train_loss=0.1, val_loss=0.2, val=0.8
            )
        )
    line = last_line(file)
    assert "figure2/citeseer-gcn" in line
    assert " 50% -:--:--" in line
    assert ("train 0.100" in line) == (width == 120)


@pytest.mark.parametrize("width", [60, 80])
def test_a_count_is_never_cut_off(width, terminal):
    file = terminal(width)
    with counting_bar(TITLE, 30) as show:
        for _ in range(30):
            show("layers 64, lr 0.001, decay_conv 0.0005")
    assert " 30/30 0:00:0" in last_line(file)
