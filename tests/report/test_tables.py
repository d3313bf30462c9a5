"""Tables in terminals that are too narrow for them."""

import io

from rich.console import Console

from gcnii.report.tables import plain_table, wrapped


def shown(table, width):
    console = Console(file=io.StringIO(), width=width, color_system=None, highlight=False)
    console.print(table)
    lines = console.file.getvalue().splitlines()
    assert all(len(line) <= width for line in lines)
    return [line.rstrip() for line in lines]


def scores(*heads, rows=1):
    table = plain_table("class", *heads)
    for i in range(rows):
        table.add_row(f"c{i}", *(f"{10 * j + i}.5 [1.0, {j}.0]" for j in range(len(heads))))
    return table


def test_numbers_with_intervals_begin_and_end_in_line():
    table = plain_table("class", "precision")
    for cell in ("100.0 [96.5, 100.0]", "7.5 [1.4, 9.0]", "–"):
        table.add_row("a", cell)
    assert shown(table, 80)[1:] == [
        " a      100.0 [96.5, 100.0]",
        " a        7.5 [1.4, 9.0]",
        " a          –",
    ]


def test_columns_without_room_follow_below_beside_the_first_one():
    lines = shown(scores("precision", "recall", "F1", rows=2), 50)
    assert [line.split()[0] for line in lines if line] == 2 * ["class", "c0", "c1"]
    assert lines[0].split() == ["class", "precision", "recall"]
    assert lines[4].split() == ["class", "F1"]
    assert lines[2].split(maxsplit=1)[1] == "1.5 [1.0, 0.0]  11.5 [1.0, 1.0]"


def test_heads_are_wrapped_before_a_column_moves():
    lines = shown(scores("average precision of class fraud", "difference"), 48)
    assert lines[-1].split()[0] == "c0"
    assert "0.5 [1.0, 0.0]  10.5 [1.0, 1.0]" in " ".join(
        lines[-1].split(maxsplit=1)[1].split("   ")
    )


def test_texts_are_wrapped_and_no_letter_is_lost():
    table = plain_table("setting", "value", numbers=slice(0))
    table.add_row("model", "a word " * 20 + "x" * 90)
    lines = shown(table, 40)
    assert sum(line.count("x") for line in lines) == 90
    assert not any("…" in line for line in lines)


def test_a_sentence_is_not_broken_within_an_interval():
    said = "R² 0.289 against 0.187 without it, a difference of +0.102 [0.002, 0.203]."
    for width in range(20, 90):
        lines = wrapped(said, width).splitlines()
        assert all(len(line) <= width for line in lines)
        assert sum("[0.002, 0.203]" in line for line in lines) == 1
