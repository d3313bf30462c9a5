"""The messages that the page on troubleshooting explains are those that the program says."""

import ast
import re

import pytest
from support.manual import ROOT

PAGE = (ROOT / "docs" / "howto" / "troubleshooting.md").read_text("utf-8")
MESSAGES = re.findall(r"^\|`([^`]+)`\|", PAGE.partition("## By message\n")[2], re.MULTILINE)
GAP = "…"


def said(node):
    """A text of the source, with GAP for what is filled in; None if it is no text."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(getattr(part, "value", GAP) for part in map(bare, node.values))
    return None


def bare(part):
    """A part of a text; without a value if it is filled in."""
    return ast.Pass() if isinstance(part, ast.FormattedValue) else part


@pytest.fixture(scope="module")
def texts():
    trees = (ast.parse(path.read_text("utf-8")) for path in ROOT.glob("src/gcnii/**/*.py"))
    return [text for tree in trees for text in map(said, ast.walk(tree)) if text]


def test_there_are_messages():
    assert len(MESSAGES) >= 15


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_that_is_explained_is_one_of_the_program(message, texts):
    parts = [re.escape(part) for part in message.replace(f"'{GAP}'", GAP).split(GAP)]
    pattern = re.compile(".*?".join(parts), re.DOTALL)
    assert any(pattern.search(text) for text in texts), message
