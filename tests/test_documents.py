"""A document is written whole, and comes back as it was or with a sentence that says where it is wrong."""

import json

import pytest

from gcnii.documents import NOTHING, NUMBER, Maybe, check, read_document, write_document

SHAPE = {
    **{
        "name": str,
        "kind": {"good", "bad"},
        "scores": [(*NUMBER, NOTHING)],
        "ok": bool,
        "best": ({"at": int}, NOTHING),
    },
    **{"versions": {str: str}, "note": Maybe(str)},
}
SOUND = {"name": "é ± \udcff", "kind": "good", "scores": [1, 0.5, None], "ok": True, "best": {"at": 3}, "versions": {}}


def test_what_was_written_comes_back_names_that_are_no_text_too(tmp_path):
    path = write_document(tmp_path / "new" / "a.json", SOUND)
    assert read_document(path, SHAPE, "thing") == SOUND
    assert "é ±" in path.read_text("utf-8")  # to be read by people


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
        ({"best": 7}, "best must be an object, got 7"),
        ({"versions": {"torch": None}}, "versions.torch must be text, got None"),
        ({"note": 1}, "note must be text, got 1"),
        ({"name": list(range(99))}, r"name must be text, got \[0, 1, .*…"),
    ],
)
def test_the_first_place_that_is_wrong_is_named(change, sentence):
    check(SOUND | {"note": "x", "best": None, "more": 1}, SHAPE)
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        check(SOUND | change, SHAPE)


@pytest.mark.parametrize("text", ["", "[]", "{", "\xff", "[" * 99_999, json.dumps(SOUND | {"scores": None})])
def test_what_is_no_such_document_is_named(text, tmp_path):
    (tmp_path / "a.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=r"a\.json is no thing: .*; restore it, or move it away"):
        read_document(tmp_path / "a.json", SHAPE, "thing")


def test_nan_is_read_as_nothing(tmp_path):
    (tmp_path / "a.json").write_text('{"scores": [NaN]}')
    assert read_document(tmp_path / "a.json", {"scores": [(*NUMBER, NOTHING)]}, "thing") == {"scores": [None]}
