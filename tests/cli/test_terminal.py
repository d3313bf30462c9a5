"""In a narrow terminal, a progress bar keeps its count."""

import io
import time
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


def test_escapes_in_what_a_bar_shows_are_seen_and_not_obeyed(terminal):
    file = terminal(120)
    with counting_bar("page of \x1b]0;owned\x07", 2) as show:
        show("explaining \x1b[31mred\nlines")
    assert "\x1b]0;" not in file.getvalue()
    assert "\x1b[31m" not in file.getvalue()
    assert r"explaining \x1b[31mred\nlines" in last_line(file)


def test_without_a_terminal_lines_take_the_place_of_a_bar(line_of_progress, capsys):
    with counting_bar("tuning pets", 12) as show:
        show("best 95.0 (gcn)")
        lines = line_of_progress("gcnii: tuning pets: 1 of 12, best 95.0 (gcn)")
    assert "\x1b" not in "".join([*lines, capsys.readouterr().err])


def test_a_hidden_bar_has_no_lines_either(line_of_progress, capsys):
    with counting_bar("tuning pets", 12, hidden=True) as show:
        show("best 95.0 (gcn)")
        time.sleep(0.1)
    assert capsys.readouterr().err == ""
