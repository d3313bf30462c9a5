"""In a narrow terminal, a progress bar keeps its count."""

import io
from functools import partial

import pytest
from rich.console import Console

from gcnii.cli import terminal as progress
from gcnii.cli.terminal import counting_bar

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


@pytest.mark.parametrize("width", [60, 80])
def test_a_count_is_never_cut_off(width, terminal):
    file = terminal(width)
    with counting_bar(TITLE, 30) as show:
        for _ in range(30):
            show("layers 64, lr 0.001, decay_conv 0.0005")
    assert " 30/30 0:00:0" in last_line(file)
