"""Every picture of the manual is made by a command, small, shown, and described in words."""

import re
import runpy

from support.manual import PAGES, ROOT, understand

MODULE = runpy.run_path(str(ROOT / "docs" / "pictures.py"))
OF_RESULTS = {"depth", "speed", "scale-growth"}  # made by `gcnii report`
FILES = sorted((ROOT / "docs" / "pictures").glob("*"))
SHOWN = re.compile(
    r"!\[(?P<alt>[^\]]*)\]\([^)]*pictures/(?P<file>[\w.-]+)\)"
    r"|^```\{(?:figure|image)\} [^\n]*pictures/(?P<block>[\w.-]+)\n(?::(?!alt)[^\n]*\n)*"
    r"(?::alt: (?P<words>[^\n]+))?",
    re.MULTILINE,
)


def test_every_picture_is_made_by_a_command():
    assert {one.suffix for one in FILES} == {".png"}
    assert {one.stem for one in FILES} == OF_RESULTS | set(MODULE["PICTURES"])
    for picture in MODULE["PICTURES"].values():
        for command in (*picture.commands, *filter(None, [picture.server])):
            understand(command)


def test_every_picture_is_small():
    taken = [one for one in FILES if one.stem not in OF_RESULTS]
    assert [one.name for one in taken if one.stat().st_size > MODULE["LARGEST"]] == []


def test_every_picture_is_shown_and_described_in_words():
    shown = [
        found
        for page in ("README.md", *PAGES)
        for found in SHOWN.finditer((ROOT / page).read_text("utf-8"))
    ]
    assert {one["file"] or one["block"] for one in shown} == {one.name for one in FILES}
    assert [one[0] for one in shown if not (one["alt"] or one["words"])] == []
