"""Nothing that is printed drives the terminal, whatever the terminal and whatever is printed."""

import io
import os
import pty
import re
import subprocess
import sys

import pytest
from support.command_line import SMALL, call, run, write_pets
from support.waiting import PATIENCE

from gcnii.cli import terminal
from gcnii.errors import LONGEST_LINE as LONGEST

pytestmark = pytest.mark.long

ESC, OSC, BIDI = "\x1b[31mred", "\x1b]0;owned\x07", "\u202egnp.exe"


def in_a_terminal(*words, cwd, **environment):
    """The exit code of a command and what a terminal with 120 columns is sent by it."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "gcnii", *map(str, words)],
        cwd=cwd,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "120"} | environment,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    sent = b""
    while chunk := _receive(ours):
        sent += chunk
    os.close(ours)
    return process.wait(timeout=PATIENCE), sent.decode("utf-8", "replace")


def _receive(terminal):
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # the other side is closed
        return b""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A graph with escapes in its folder's name, its columns, its nodes and its classes."""
    folder = write_pets(tmp_path_factory.mktemp("hostile") / f"pets{OSC}{ESC}")
    for path in folder.iterdir():
        text = path.read_text().replace("pet1", f"pet{ESC}").replace("cat", f"cat{BIDI}{OSC}")
        path.write_text(text.replace("x1", f"x{ESC}"))
    return folder


def refuse_escapes(text):
    """Check that the text has no escapes but Rich's own: colours, and those of its bars."""
    rest = re.sub(r"\x1b\[([\d;]*m|\?25[lh]|[12]K|\d?A)", "", text.replace("\r", ""))
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", rest), rest
    assert "\x1b[31m" not in text


@pytest.mark.parametrize("command", [("data", "check"), ("train", *SMALL, "--out", "bundle")])
def test_escapes_in_names_columns_and_labels_are_shown_to_a_terminal(command, hostile, tmp_path):
    code, sent = in_a_terminal(*command, hostile, cwd=tmp_path)
    assert code == 0, sent
    assert r"pets\x1b]0;owned\x07\x1b[31mred" in sent
    refuse_escapes(sent)
    assert r"\x1b[0m" not in sent  # Rich's own are not shown


def test_labels_in_a_terminal_show_escapes_and_in_a_file_are_left_alone(hostile, tmp_path):
    assert call("train", hostile, *SMALL, "--out", "bundle", cwd=tmp_path).code == 0
    code, sent = in_a_terminal("predict", "bundle", cwd=tmp_path)
    assert code == 0, sent
    assert r"pet\x1b[31mred" in sent
    assert r"cat\u202egnp.exe\x1b]0;owned\x07" in sent
    refuse_escapes(sent)
    assert f"pet{ESC}" in run("predict", "bundle", cwd=tmp_path).out
    assert call("predict", "bundle", "--out", "labels.csv", cwd=tmp_path).code == 0
    assert f"cat{BIDI}{OSC}" in (tmp_path / "labels.csv").read_text()


def test_a_graphs_own_name_cannot_hold_a_line(tmp_path):
    write_pets(tmp_path / "pets\ngcnii: all is well")
    answer = call("data", "check", "pets\ngcnii: all is well", cwd=tmp_path)
    assert r"Graph(pets\ngcnii: all is well: 12 nodes" in answer.out


@pytest.mark.parametrize(
    "words",
    [
        ("train", f"./{ESC}"),
        ("train", f"./{BIDI}"),
        ("train", f"./a\nb{OSC}"),
        ("train", "--model", ESC),
        ("train", "--device", OSC),
        ("train", f"--{ESC}"),
        (ESC,),
        ("data", "check", f"no/{ESC}"),
        ("report", "html", "--results", f"{ESC}\n", "--out", f"/proc/{OSC}/page.html"),
    ],
    ids=ascii,
)
def test_an_error_is_one_visible_line(words, tmp_path):
    answer = call(*words, cwd=tmp_path)
    assert answer.code in (1, 2)
    (line,) = answer.err.splitlines()
    refuse_escapes(answer.err)
    assert line.startswith("gcnii: ")


def test_an_error_has_at_most_400_characters_and_keeps_its_remedy(tmp_path):
    answer = call("train", f"no/{'deep/' * 500}where", cwd=tmp_path)
    line = answer.err.removeprefix("gcnii: ").rstrip("\n")
    assert (answer.code, len(line)) == (2, LONGEST)
    assert line.startswith("no/deep/deep/")
    assert line.endswith("or a folder of CSV files with :ID and :START_ID columns (Neo4j)")


def test_every_problem_of_a_graph_is_one_short_visible_line(tmp_path):
    folder = write_pets(tmp_path / "pets")
    edges = (folder / "edges.csv").read_text()
    (folder / "edges.csv").write_text(f"{edges}{ESC},pet0\n{'long' * 900},pet1\n")
    answer = call("data", "check", "pets", cwd=tmp_path)
    assert answer.code == 2
    refuse_escapes(answer.err)
    assert max(map(len, answer.err.splitlines())) <= LONGEST + len("gcnii: ")


def test_a_warning_is_one_visible_line(tmp_path):
    folder = write_pets(tmp_path / "pets")
    edges = (folder / "edges.csv").read_text().replace("\n", ",1\n")
    (folder / "edges.csv").write_text(edges.replace("target,1", f"target,since{ESC}"))
    answer = call("train", "pets", *SMALL, "--out", "b", cwd=tmp_path)
    assert (answer.code, len(answer.err.splitlines())) == (0, 1)
    assert r"since\x1b[31mred" in answer.err


@pytest.mark.parametrize(
    "words", [("models",), ("data", "show", "cora"), ("train", "--help"), ("theory",)], ids=" ".join
)
def test_a_c_locale_has_a_question_mark_for_each_letter_that_it_lacks(words, tmp_path):
    answer = run(*words, cwd=tmp_path, LC_ALL="C", PYTHONCOERCECLOCALE="0", PYTHONUTF8="0")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.isascii()
    assert answer.out


def test_a_width_beyond_sense_is_not_believed(tmp_path):
    answer = run("train", "--help", cwd=tmp_path, COLUMNS="1000000000", LINES="²")
    assert (answer.code, answer.err) == (0, "")
    assert max(map(len, answer.out.splitlines())) < 2 * terminal.WIDEST


@pytest.mark.parametrize(
    ("columns", "believed"),
    [
        ("1000000000", "1000"),
        ("9" * 5000, None),
        ("²", None),
        ("١٢", None),
        ("-5", None),
        ("wide", None),
        ("100", "100"),
        ("", ""),
    ],
)
def test_a_width_is_a_number_of_a_sane_size(columns, believed, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    terminal.limit_width()
    assert os.environ.get("COLUMNS") == believed


@pytest.mark.parametrize("words", ["predict b", "data check pets"])
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_closed_stream_is_not_an_error(closed, words, home, bundle, tmp_path):
    (tmp_path / "b").symlink_to(bundle)
    (tmp_path / "pets").symlink_to(home / "pets")
    command = f"exec {sys.executable} -m gcnii {words} {closed}"
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_error_with_stderr_closed_does_not_go_to_stdout():
    command = f"exec {sys.executable} -m gcnii data show coar 2>&-"
    done = subprocess.run(command, shell=True, capture_output=True)
    assert (done.returncode, done.stdout) == (2, b"")


def test_rich_writes_past_the_stream_that_shows_escapes():
    from rich.console import Console

    behind = io.TextIOWrapper(io.BytesIO(), "utf-8")
    shown = terminal.VisibleStream(behind)
    print(f"a {ESC}", file=shown)
    console = Console(file=shown, force_terminal=True, color_system="standard")
    console.print("b", style="red")
    shown.flush()
    assert behind.buffer.getvalue().decode() == "a \\x1b[31mred\n\x1b[31mb\x1b[0m\n"
