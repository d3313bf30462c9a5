"""The manual and the program keep to one word for one thing."""

import ast
import inspect
import re

import pytest
from support.manual import PAGES, ROOT, docs_module

LOST = {  # a word that lost, and the one that is kept
    "trainings": "training runs",
    "(?:a|another|each|every|one|same|single) training(?! (?:graph|node|run|step))": "training run",
    "graph of (?:the|its) training": "training graph",
    "step size": "learning rate",
    "labelled (?:rightly|wrongly)": "predicted",
    "(?<!in-)links(?! (?:to|leads|up|have|them|each row|between pages))": "edges",
}
CODE = re.compile(r"^( *)```.*?^\1```$|`[^`\n]*`|\]\([^)]*\)", re.MULTILINE | re.DOTALL)
RESULTS = "docs/evidence/results.md"  # its rows are called as their runs are kept
SAYING = sorted(ROOT.glob("src/gcnii/**/*.py"))


def lost_words(text):
    """What a page should not say, each with what stands around it and what to say instead."""
    text = " ".join(CODE.sub(" ", text).split())
    return [
        (text[max(0, at.start() - 30) : at.end() + 20], kept)
        for lost, kept in LOST.items()
        for at in re.finditer(rf"\b{lost}\b", text, re.IGNORECASE)
    ]


def sentences(source):
    """The texts of a program that are neither names nor docstrings: what it says when it runs."""
    tree = ast.parse(source)
    alone = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Expr)}
    texts = (
        one for one in ast.walk(tree) if isinstance(one, ast.Constant) and id(one) not in alone
    )
    return [one.value for one in texts if isinstance(one.value, str) and " " in one.value]


@pytest.mark.parametrize("page", [page for page in ("README.md", *PAGES) if page != RESULTS])
def test_a_page_has_no_word_that_another_took_the_place_of(page):
    assert lost_words((ROOT / page).read_text("utf-8")) == []


def test_the_program_has_no_word_that_another_took_the_place_of():
    said = ((path, text) for path in SAYING for text in sentences(path.read_text("utf-8")))
    assert [(path, found) for path, text in said for found in lost_words(text)] == []


def test_help_and_docstrings_have_no_word_that_another_took_the_place_of():
    made = docs_module("generated")
    documented = [made.thing(name) for group in made.API.values() for name in group]
    documented += [
        getattr(made.thing(name), member)
        for group in made.API.values()
        for name, members in group.items()
        for member in members.split()
    ]
    texts = [*made.commands().values(), *(inspect.getdoc(one) or "" for one in documented)]
    assert [found for text in texts for found in lost_words(text)] == []


def test_what_a_program_says_is_found_beside_its_names_and_docstrings():
    source = '"""Links."""\nlinks = f"{n} links of it" + "links"\n'
    assert sentences(source) == [" links of it"]
    assert lost_words(" links of it")[0][1] == "edges"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Two trainings differ.", ["training runs"]),
        ("Another training of it; every training node of a training run.", ["training run"]),
        ("It lacks the links of a node.", ["edges"]),
        ("The graph of the training is not there.", ["training graph"]),
        ("A page links to others; `links` is code, and [a link](links.md) leads there.", []),
    ],
)
def test_a_word_that_lost_is_found_where_it_is_no_code(text, kept):
    assert [found[1] for found in lost_words(text)] == kept
