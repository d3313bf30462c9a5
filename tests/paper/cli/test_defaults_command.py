"""gcnii reproduce defaults: wrong usage is refused before anything is trained."""

import pytest
from support.command_line import call


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--only", "karate"), "no graph has 'karate' in its name; known: squirrel, facebook, "),
        (("--data", "nowhere"), "nowhere is not a folder"),
    ],
)
def test_wrong_usage_is_refused(words, error, tmp_path):
    answer = call("reproduce", "defaults", *words, cwd=tmp_path)
    assert answer.code == 2
    assert error in answer.err
