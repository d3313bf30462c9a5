"""Files are written whole or not at all, and a document that does not fit says where."""

import errno
import json
import os
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from gcnii.errors import LONGEST_LINE as LONGEST
from gcnii.errors import InputError, one_line, visible
from gcnii.files import (
    NOTHING,
    Maybe,
    Only,
    atomic_write,
    check,
    one_name,
    read_document,
    refuse_replacing,
    refuse_special,
    remove_stale,
    user_path,
    write_document,
)

SHAPE = {
    "name": str,
    "kind": {"good", "bad"},
    "scores": [(float, NOTHING)],
    "ok": bool,
    "best": ({"at": int, "span": Maybe([int, int])}, NOTHING),
    "versions": {str: str},
    "note": Maybe(str),
}
SOUND = {
    "name": "é ± \udcff",
    "kind": "good",
    "scores": [1, 0.5, None],
    "ok": True,
    "best": {"at": 3},
    "versions": {},
}


def test_a_file_appears_when_it_is_complete(tmp_path):
    with atomic_write(tmp_path / "deep" / "file") as temporary:
        temporary.write_text("new")
        assert not (tmp_path / "deep" / "file").exists()
    assert (tmp_path / "deep" / "file").read_text() == "new"
    assert len(list((tmp_path / "deep").iterdir())) == 1


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(FileNotFoundError), atomic_write(path) as temporary:
        temporary.with_name("nothing").read_text()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_writing_in_threads_leaves_the_mask_of_new_files_as_it_was(tmp_path):
    before = os.umask(0o027)
    try:
        with ThreadPoolExecutor(8) as pool:
            paths = list(pool.map(lambda i: write_document(tmp_path / str(i), {}), range(400)))
        assert {stat.S_IMODE(path.stat().st_mode) for path in paths} == {0o640}
    finally:
        left = os.umask(before)
    assert left == 0o027


def test_stale_temporary_files_are_removed_and_nothing_else(tmp_path):
    path, hour = tmp_path / "a.json", 3600
    ours = f".a.json.{os.getpid()}.0123abcd"
    ages = {
        ".a.json.old_name": 2 * hour,
        ours: 0,
        ".a.json.ab_cd012": 60,
        ".a.json.4194305.00ffee11": 0,
    }
    others = ("a.json", "a.json.4194305.00ffee11", ".b.json.4194305.00ffee11", ".a.json.mine")
    for name, age in (ages | dict.fromkeys(others, 2 * hour)).items():
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    remove_stale(path)
    left = {one.name for one in tmp_path.iterdir()}
    assert left == {*others, ours, ".a.json.ab_cd012"}  # no process has a number above 2²²
    remove_stale(tmp_path / "missing" / "a.json")


def test_the_error_of_a_full_disk_names_the_file(tmp_path):
    with pytest.raises(OSError, match="No space left") as raised, atomic_write(tmp_path / "file"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert raised.value.filename == str(tmp_path / "file")


def test_what_was_written_is_read_back_even_if_a_name_is_not_valid_text(tmp_path):
    path = write_document(tmp_path / "new" / "a.json", SOUND)
    assert read_document(path, SHAPE, "thing", dict) == SOUND
    assert "é ±" in path.read_text("utf-8")  # people read it too


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"name": 3}, "name must be text, got 3"),
        ({"kind": "ugly"}, "kind must be one of bad, good, got 'ugly'"),
        ({"kind": []}, r"kind must be one of bad, good, got \[\]"),
        ({"scores": 0.5}, "scores must be a list, got 0.5"),
        ({"scores": [0.5, "x"]}, r"scores\[1\] must be a number or null, got 'x'"),
        ({"scores": [True]}, r"scores\[0\] must be a number or null, got True"),
        ({"scores": [float("inf")]}, r"scores\[0\] must be a number or null, got inf"),
        ({"ok": 1}, "ok must be true or false, got 1"),
        ({"best": {}}, "best.at is missing"),
        ({"best": 7}, "best must be an object or null, got 7"),
        ({"best": {"at": 1, "span": [1]}}, r"best.span must be a list of 2, got \[1\]"),
        ({"best": {"at": 1, "span": [1, "x"]}}, r"best.span\[1\] must be a whole number, got 'x'"),
        ({"versions": {"torch": None}}, "versions.torch must be text, got None"),
        ({"note": 1}, "note must be text, got 1"),
        ({"name": list(range(99))}, r"name must be text, got \[0, 1, .*…"),
    ],
)
def test_the_first_place_that_is_wrong_is_named(change, sentence):
    check(SOUND | {"note": "x", "best": None, "more": 1}, SHAPE)
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        check(SOUND | change, SHAPE)


@pytest.mark.parametrize(
    "text", ["", "[]", "{", "\xff", "[" * 99_999, json.dumps(SOUND | {"scores": None})]
)
def test_a_file_that_is_not_such_a_document_is_named(text, tmp_path):
    (tmp_path / "a.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(
        ValueError, match=r"a\.json is not a thing: .*; restore it, or move it away"
    ):
        read_document(tmp_path / "a.json", SHAPE, "thing", dict)


def test_nan_is_read_as_none(tmp_path):
    (tmp_path / "a.json").write_text('{"scores": [NaN]}')
    document = read_document(tmp_path / "a.json", {"scores": [(float, NOTHING)]}, "thing", dict)
    assert document == {"scores": [None]}


def test_an_error_of_the_maker_names_the_file_too(tmp_path):
    def make(document):
        raise ValueError("it is too small")

    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(ValueError, match=r"a\.json is not a thing: it is too small; restore it, "):
        read_document(tmp_path / "a.json", {}, "thing", make)


def test_an_object_may_be_closed_to_other_keys():
    check({"a": 1, "b": 2}, {"a": int})
    with pytest.raises(ValueError, match=r"^runs\[1\].b is unknown$"):
        check([{"a": 1}, {"a": 1, "b": 2}], [Only({"a": int})], "runs")


def test_true_is_not_a_number_and_a_number_is_not_true():
    for value, shape in ((True, int), (True, float), (1, bool), (1.0, int)):
        with pytest.raises(ValueError, match="it must be "):
            check(value, shape)
    check(1, float)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("\x1b]8;;http://x\x07", r"\x1b]8;;http://x\x07"),
        ("\x9b2J\x7f\x00\x08\r", r"\x9b2J\x7f\x00\x08\r"),
        ("a\u202eb\u2066c\u2069", r"a\u202eb\u2066c\u2069"),
        ("lines\n\tand é ± σ 猫 🐈", "lines\n\tand é ± σ 猫 🐈"),
    ],
)
def test_control_characters_are_shown_as_escapes_and_all_others_as_they_are(text, shown):
    assert visible(text) == shown


def test_a_sentence_is_one_line_and_cut_in_the_middle():
    assert one_line("a\nb\x1b") == r"a\nb\x1b"
    long = one_line(f"expected a, got {'x' * 9999}; do this instead")
    assert len(long) == LONGEST
    assert long.startswith("expected a, got xxx")
    assert long.endswith("xxx; do this instead")
    assert one_line("y" * LONGEST) == "y" * LONGEST


def test_a_user_who_is_not_there_is_named(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    assert user_path("~/x") == Path("/home/me/x")
    with pytest.raises(InputError, match=r"^~nobody-at-all/x begins with a user who has no folder"):
        user_path("~nobody-at-all/x")


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_a_document_that_is_not_a_file_is_refused_and_not_waited_for(kind, tmp_path):
    path = tmp_path / "x.json"
    {
        "pipe": lambda: os.mkfifo(path),
        "device": lambda: path.symlink_to("/dev/zero"),
        "folder": path.mkdir,
    }[kind]()
    with pytest.raises(
        InputError, match=r"x\.json is not a regular file; copy what it holds into "
    ):
        read_document(path, dict, "document", dict)


def test_a_file_that_is_not_there_is_left_to_its_reader(tmp_path):
    refuse_special(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError):
        read_document(tmp_path / "nothing", dict, "document", dict)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("../../../loot", "_.._.._loot"),
        ("/etc/passwd", "_etc_passwd"),
        ("..", "graph"),
        (" . ", "graph"),
        (".hidden", "hidden"),
        ("a\x00b\n", r"a\x00b\n"),
        ("é" * 99, "é" * 50),
        ("cora v2", "cora v2"),
        ("pets \udcff\ud800", "pets"),
    ],
)
def test_a_name_is_one_component_of_a_path(text, name):
    assert one_name(text) == name


def test_a_file_that_safetensors_writes_has_the_mode_that_others_have(tmp_path):
    before = os.umask(0o022)
    try:
        with atomic_write(tmp_path / "a.safetensors") as temporary:
            save_file({"W": np.eye(2)}, temporary)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.safetensors").stat().st_mode) == 0o644


@pytest.mark.parametrize("given", [3, b"x", [], 1j, None])
def test_what_is_not_a_path_is_refused(given):
    with pytest.raises(InputError, match="expected the path of a file or folder as text or Path"):
        user_path(given)


def test_half_a_character_is_no_part_of_a_name():
    assert one_name("a\ud800/b") == "a_b"


@pytest.mark.parametrize("odd", ["loop", "too long", "NUL", "half a character"])
def test_a_path_that_no_file_can_have_is_refused_where_it_enters(odd, tmp_path):
    names = {"loop": "loop", "too long": "x" * 500, "NUL": "a\0b", "half a character": "\ud800"}
    path = tmp_path / names[odd]
    if odd == "loop":
        path.symlink_to(path.name)
    for read in (user_path, refuse_special, lambda path: refuse_replacing(path, bool)):
        with pytest.raises(InputError, match=r"cannot be read or written: .*; "):
            read(path)
    with pytest.raises(InputError, match=r"replace the link|choose another"):
        user_path(path / "x.csv")


def test_a_link_that_leads_nowhere_is_replaced_only_if_asked(tmp_path):
    path = tmp_path / "labels.csv"
    path.symlink_to("nowhere.csv")
    with pytest.raises(InputError, match="exists and gcnii did not write it"):
        refuse_replacing(path, bool, inputs=[tmp_path])
    refuse_replacing(path, bool, overwrite=True)
