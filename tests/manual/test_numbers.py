"""Every decimal number and percentage of README.md and docs/ has something behind it.

A number is one of these:

- made by `gcnii report readme`: it stands in a marked part, or in docs/evidence/results.md;
- a CLAIM: a text of the page, with # for each number, and a function that computes them from
  results/, from constants of the code or from a graph;
- GIVEN: a text of the page, and the reason why nothing is to be computed;
- measured once: its paragraph says "measured on DATE at COMMIT"; the table after it is, too, and
  where it says "in this section", so is everything up to the next heading.

Code, commands and addresses are left out.
"""

import re

import pytest
from support.claims import CLAIMS, GIVEN
from support.manual import PAGES, ROOT

GENERATED = ("docs/evidence/results.md",)
CHECKED = [page for page in ("README.md", *PAGES) if page not in GENERATED]
NUMBER = r"[-+]?(?:\d[\d,]*)?\.?\d+(?:e-?\d+)?"
UNEXPLAINED = re.compile(
    r"(?<![\w.,])[-+]?(?:\d[\d,]*\.\d+(?:e-?\d+)?|\.\d{2,}|\d+e-?\d+|\d[\d,]*(?= ?%))(?!\.\d)"
)
LEFT_OUT = [
    re.compile(r"<!-- results: made by .*?<!-- end of results -->", re.DOTALL),
    re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL),
    re.compile(r"^ {4,}\S.*$", re.MULTILINE),
    re.compile(r"`[^`]*`"),
    re.compile(r"\]\([^)]*\)|https?://\S+"),
]
MEASURED = re.compile(r"[Mm]easured (?:[^.]{,40} )?on \d{1,2} [A-Z][a-z]+ 20\d\d,? at [0-9a-f]{7,}")
CODE = re.compile(r"`[^`]*`")


def text_of(page):
    return (ROOT / page).read_text("utf-8")


def words(text):
    """On one line, with single spaces."""
    return " ".join(text.split())


def repeated(text):
    """The text without paragraphs that say when they were measured, and what goes with them."""
    kept, tables, section = [], False, False
    for block in re.split(r"\n\s*\n", text):
        section = section and not block.startswith("#")
        said = MEASURED.search(words(block))
        if not (said or section or (tables and block.lstrip().startswith("|"))):
            kept.append(block)
        section = section or bool(said and "in this section" in words(block))
        tables = bool(said)
    return "\n\n".join(kept)


def plain(text):
    """What a page says, without what is left out."""
    for part in LEFT_OUT:
        text = part.sub(" ", text)
    return words(repeated(text))


def pattern(text):
    """Of a claim: # stands for a number."""
    found = re.escape(words(CODE.sub(" ", text))).replace(r"\#", f"({NUMBER})")
    return re.compile(rf"(?<![\d.]){found}(?!\d|\.\d)")


def said(claim, text):
    """The numbers that a page has in the place of #."""
    found = pattern(claim.text).findall(plain(text))
    assert len(found) == 1, f"{claim.page} has {len(found)} times: {claim.text}"
    return (found[0],) if isinstance(found[0], str) else found[0]


def unexplained(page, text):
    """The numbers of a page without anything behind them, each with what stands before it."""
    text = plain(text)
    for one in (*CLAIMS, *GIVEN):
        if one.page == page:
            found = pattern(one.text)
            assert found.search(text), f"{page} no longer says: {one.text}"
            text = found.sub(" ", text)
    return [text[max(0, at.start() - 30) : at.end()] for at in UNEXPLAINED.finditer(text)]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim.page}: {claim.text[:40]}")
def test_the_numbers_of_a_text_are_those_that_are_computed(claim, real_data):
    assert said(claim, text_of(claim.page)) == tuple(claim.numbers(real_data)), claim.text


@pytest.mark.parametrize("page", CHECKED)
def test_every_number_of_a_page_has_something_behind_it(page):
    found = unexplained(page, text_of(page))
    assert not found, (
        f"{page}: {found} have nothing behind them; add them to tests/support/claims.py, or say on "
        "which day and at which commit they were measured"
    )


def test_a_number_that_was_changed_is_not_the_computed_one(real_data):
    claim = next(one for one in CLAIMS if "replicate the paper's" in one.text)
    text = text_of(claim.page)
    own, printed = said(claim, text)
    changed = text.replace(f"Does {own}", "Does 12.3")
    assert said(claim, changed) == ("12.3", printed) != tuple(claim.numbers(real_data))


@pytest.mark.parametrize(
    ("sentence", "numbers"),
    [
        ("It is 12.3 times as fast.", ["12.3"]),
        ("It wins on 45 % of them, by .25 or 1e-3.", ["45", ".25", "1e-3"]),
        ("|a|1.5 ± 0.5|", ["1.5", "0.5"]),
        ("`lr 0.01` of [version](https://a.b/1.5), in 2020, for 64 layers.", []),
        ("It takes 1.5 s (measured on 3 May 2026 at 0123abc).\n\n|a|2.5|", []),
        ("It takes 1.5 s (measured on 3 May 2026 at 0123abc).\n\nThen 2.5 s.", ["2.5"]),
        ("In this section, 1.5 was measured on 3 May 2026.", ["1.5"]),
    ],
)
def test_a_new_number_needs_something_behind_it(sentence, numbers):
    found = unexplained("docs/new.md", f"# New\n\n{sentence}\n")
    assert [one.split()[-1].split("|")[-1] for one in found] == numbers


def test_a_text_that_a_page_no_longer_has_is_named():
    with pytest.raises(AssertionError, match=r"README.md no longer says: Python # or later"):
        unexplained("README.md", "# gcnii\n")


def test_every_text_is_of_a_page_and_has_a_number_or_a_reason():
    assert all("#" in claim.text for claim in CLAIMS)
    assert all(UNEXPLAINED.search(words(one.text)) and one.reason for one in GIVEN)
    assert {one.page for one in (*CLAIMS, *GIVEN)} <= set(CHECKED)
