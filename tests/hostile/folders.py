"""Damaged folders of nodes.csv and edges.csv."""

import csv
import io
from collections.abc import Callable
from pathlib import Path
from random import Random

from gcnii.data import load
from hostile.damage import damaged_bytes
from hostile.judging import Silent, Wrong, answer_of, nothing_written
from hostile.tables import Meaning, NotATable, compare, meaning_of_folder

Rows = list[list[str]]
Files = dict[str, bytes]

CELLS = (
    *("", " ", "0", "-0", "1", "01", "1.0", "+1", ".5", "5.", "1e5", "1E-400", "1e39", "1e309"),
    *("9" * 25, "9" * 400, "-1", "0x10", "1_000", "１", "1,5", "nan", "NaN", "inf", "-inf"),
    *("null", "NA", "None", "?", "true", "FALSE", "train", "val", "test", "TRAIN", "id", "node"),
    *(
        '"',
        '""',
        "'",
        "=1+1",
        "a;b",
        "a|b",
        "a\tb",
        "a\nb",
        "a\r\nb",
        "\ufeff",
        "\u202e",
        "\x1b[2J",
    ),
    *("\x00", "\x07", "\u200b", "\xa0", "é", "e\u0301", "😀", "\udc80", "#", "\\", "2024-02-30"),
    *("x" * 5000, "x" * 200_000, "<b>", "../../x", "p1", " p1 ", "P1", "1" * 17, "0.1" + "0" * 400),
)
HEADS = (
    *("id", "ID", "label", "Label", "split", "source", "target", "weight", "Weight", "from", "to"),
    *("x", "", " ", "x0", "u", "v", "src", "dst", "\ufeffid", "a,b", "index", "type", '"', "1"),
)


class Folders:
    """A folder is the graph that it says, or is refused in a sentence; nothing is written."""

    name, few, quick, long = "folders", 20, 320, 4000

    def __init__(self, home: Path):
        """Nothing is shared: each case draws its own tables."""

    def attempt(self, random: Random, folder: Path) -> None:
        """Two tables, some damage, and `load`."""
        tables = drawn_tables(random)
        harmless = random.random() < 0.25
        if harmless:
            change = random.choice(HARMLESS)
            files, told = change(random, tables), change.__name__
        else:
            files, told = damaged(random, tables)
        target = folder / "graph"
        write(target, files)
        with nothing_written(folder):
            answer = answer_of(lambda: load(target))
        expected = meaning(target)
        try:
            if harmless:
                write(folder / "before", encoded(tables))
                expected = meaning(folder / "before")
                if answer.value is None:
                    raise Wrong(f"refused: {answer.sentence}")
            if answer.value is not None:
                if expected is None:
                    raise Silent(f"accepted as {answer.value!r}")
                compare(answer.value, expected)
        except Wrong as wrong:
            raise wrong.after(told) from None

    def close(self) -> None:
        """Nothing to end."""


def meaning(folder: Path) -> Meaning | None:
    """What the folder says; None if it must be refused."""
    try:
        return meaning_of_folder(folder)
    except NotATable:
        return None


def drawn_tables(random: Random) -> dict[str, Rows]:
    """A valid graph of some people: with or without weights, splits, words and missing labels."""
    n = random.randint(8, 16)
    weighted, split = random.random() < 0.5, random.random() < 0.7
    names = [f"p{i}" for i in range(n)]
    roles = ("train", "train", "val", "test")
    nodes = [["id", "age", "town", "label", *(["split"] if split else [])]]
    for i, name in enumerate(names):
        town = random.choice(("Oslo", "Rome", "São Paulo"))
        # both classes are in each part
        row = [name, f"{random.uniform(1, 90):.3f}", town, ("cat", "dog")[i % 2]]
        nodes.append([*row, roles[i // 2 % 4]] if split else row)
    edges = [["source", "target", *(["weight"] if weighted else [])]]
    for i, name in enumerate(names):
        edge = [name, names[(i + random.randint(1, n // 2 - 1)) % n]]
        edges.append([*edge, f"{random.uniform(0.1, 3):.2f}"] if weighted else edge)
    return {"nodes.csv": nodes, "edges.csv": edges}


def text_of(rows: Rows, separator: str = ",", quoting: int = csv.QUOTE_MINIMAL) -> str:
    """The rows as CSV."""
    out = io.StringIO()
    csv.writer(out, delimiter=separator, quoting=quoting, lineterminator="\n").writerows(rows)
    return out.getvalue()


def encoded(tables: dict[str, Rows]) -> Files:
    """The two files as they are meant."""
    return {name: text_of(rows).encode("utf-8", "surrogatepass") for name, rows in tables.items()}


def write(folder: Path, files: Files) -> None:
    """Make the folder with these files."""
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)


# Changes that change nothing


def _with_marks(random: Random, tables: dict[str, Rows]) -> Files:
    return {name: b"\xef\xbb\xbf" + content for name, content in encoded(tables).items()}


def _with_windows_line_ends(random: Random, tables: dict[str, Rows]) -> Files:
    return {name: content.replace(b"\n", b"\r\n") for name, content in encoded(tables).items()}


def _quoted(random: Random, tables: dict[str, Rows]) -> Files:
    return {n: text_of(rows, quoting=csv.QUOTE_ALL).encode() for n, rows in tables.items()}


def _without_the_last_line_end(random: Random, tables: dict[str, Rows]) -> Files:
    return {name: content.rstrip() for name, content in encoded(tables).items()}


def _with_blank_lines(random: Random, tables: dict[str, Rows]) -> Files:
    for rows in tables.values():
        rows.insert(random.randint(1, len(rows)), random.choice(([], [" "])))
    return encoded(tables)


def _with_spaces(random: Random, tables: dict[str, Rows]) -> Files:
    padded = {n: [[f" {cell}\t" for cell in row] for row in rows] for n, rows in tables.items()}
    return encoded(padded)


def _with_columns_in_another_order(random: Random, tables: dict[str, Rows]) -> Files:
    for name, rows in tables.items():
        order = random.sample(range(len(rows[0])), len(rows[0]))
        tables[name] = [[row[j] for j in order] for row in rows]
    return encoded(tables) if random.random() < 0.9 else _quoted(random, tables)


def _with_edges_in_another_order(random: Random, tables: dict[str, Rows]) -> Files:
    header, *edges = tables["edges.csv"]
    swapped = [[v, u, *rest] if random.random() < 0.5 else [u, v, *rest] for u, v, *rest in edges]
    return encoded(tables | {"edges.csv": [header, *random.sample(swapped, len(swapped))]})


def _in_capitals(random: Random, tables: dict[str, Rows]) -> Files:
    for rows in tables.values():
        roles = ("id", "label", "split", "source", "target", "weight")
        rows[0] = [name.upper() if name in roles else name for name in rows[0]]
    return encoded(tables)


HARMLESS: tuple[Callable[[Random, dict[str, Rows]], Files], ...] = (
    _with_marks,
    _with_windows_line_ends,
    _quoted,
    _without_the_last_line_end,
    _with_blank_lines,
    _with_spaces,
    _with_edges_in_another_order,
    _with_columns_in_another_order,
    _in_capitals,
)


# Damage


def damaged(random: Random, tables: dict[str, Rows]) -> tuple[Files, str]:
    """One to three things wrong with the tables, and perhaps one with the bytes of a file."""
    told = [damaged_rows(random, tables) for _ in range(random.randint(0, 2))]
    files = encoded(tables)
    name = random.choice(list(files))
    how = random.choice(("bytes", "bytes", "encoding", "separator", "line ends", "as it is"))
    if how == "bytes" or not told:
        files[name], what = damaged_bytes(random, files[name])
        told.append(f"{name}: {what}")
    elif how == "encoding":
        coding = random.choice(("utf-16", "utf-32", "latin-1", "cp037", "utf-7"))
        text = files[name].decode("utf-8", "surrogatepass")
        files[name] = text.encode(coding, "replace")
        told.append(f"{name} in {coding}")
    elif how == "separator":
        separator = random.choice(";\t| :")
        files[name] = text_of(tables[name], separator).encode("utf-8", "surrogatepass")
        told.append(f"{name} with {separator!r}")
    elif how == "line ends":
        end = random.choice((b"\r", b"\n\r", b"\x85", b"\x0b", b"\r\r\n"))
        files[name] = files[name].replace(b"\n", end)
        told.append(f"{name} with line ends {end!r}")
    return files, "; ".join(told)


def damaged_rows(random: Random, tables: dict[str, Rows]) -> str:
    """Do something to a cell, a row, a column or the header; say what."""
    name = random.choice(list(tables))
    rows = tables[name]
    i, j = random.randrange(1, len(rows)), random.randrange(max(len(rows[0]), 1))
    how = random.choice(("cell", "cell", "cell", "copy", "row", "column", "header", "ragged"))
    if how == "cell":
        cell = random.choice(CELLS)
        rows[i] = [cell if k == j else other for k, other in enumerate(rows[i])]
        return f"{name}: row {i}, column {j} is {cell[:20]!r}"
    if how == "copy":
        k = random.randrange(1, len(rows))
        rows[i] = list(rows[k])
        return f"{name}: row {i} is row {k}"
    if how == "row":
        word = random.choice(("removed", "repeated", "moved to the front", "all rows removed"))
        if word == "repeated":
            rows.insert(i, list(rows[i]))
        elif word == "all rows removed":
            del rows[1:]
            rows.append([])
        else:
            row = rows.pop(i)
            if word == "moved to the front":
                rows.insert(0, row)
        return f"{name}: row {i} {word}"
    if how == "column":
        return f"{name}: {_damaged_column(random, rows, j)}"
    if how == "header":
        head = random.choice(HEADS)
        rows[0] = [head if k == j else other for k, other in enumerate(rows[0])]
        return f"{name}: column {j} is called {head!r}"
    rows[i] = random.choice((rows[i] + ["1"], rows[i][:-1], rows[i] + ["", ""], [""]))
    return f"{name}: row {i} has {len(rows[i])} cells"


def _damaged_column(random: Random, rows: Rows, j: int) -> str:
    how = random.choice(("removed", "repeated", "shifted", "the same cell everywhere", "new"))
    cell = random.choice(CELLS)
    column = [row[j] if j < len(row) else "" for row in rows]
    if how == "shifted":
        column = [column[0], *column[2:], *column[1:2]]
    elif how == "the same cell everywhere":
        column = [column[0], *[cell] * (len(rows) - 1)]
    elif how == "new":
        column = [random.choice(HEADS), *(random.choice(CELLS) for _ in rows[1:])]
    for i, row in enumerate(rows):
        rest = row[:j] + row[j + 1 :]
        if how == "removed":
            rows[i] = rest
        elif how in ("repeated", "new"):
            rows[i] = [*row, column[i]]
        else:
            rows[i] = [*rest[:j], column[i], *rest[j:]]
    return f"column {j} {how}, {cell[:20]!r}"
