"""gcnii reproduce defaults: with a complete study it only prints."""

import json
import shutil
from pathlib import Path

import pytest
from support.command_line import call

RESULTS = Path(__file__).parents[3] / "results" / "defaults"


@pytest.fixture
def folder(tmp_path):
    shutil.copytree(RESULTS, tmp_path / "results" / "defaults")
    return tmp_path


def test_a_complete_study_is_printed_and_nothing_is_trained(folder):
    answer = call("reproduce", "defaults", "--only", "cora", cwd=folder)
    assert (answer.code, answer.err) == (0, "")
    assert "|cora-full|0.83|0.80|88.1|appnp 88.5|-0.4 ± 0.4|" in answer.out
    assert "|film|" not in answer.out
    assert "Mean of 20 graphs, each left out of its own choice: the default 77.1; " in answer.out
    assert "|ρ ≥ 30|gcnii|4|64|0.1|1|0.2|" in answer.out


def test_json_has_every_row_and_what_is_chosen(folder):
    answer = call("reproduce", "defaults", "--only", "mine", "--json", cwd=folder)
    document = json.loads(answer.out)
    (row,) = document["graphs"]
    assert (row["graph"], row["left out"]["layers"]) == ("minesweeper", 4)
    assert row["default difference"]["mean"] == pytest.approx(-2.46)
    assert (row["homophily"], row["kind"]) == (0.013, 2)
    assert list(document["chosen"]) == [
        "ρ < 1, homophily ≥ 0",
        "1 ≤ ρ < 30; or ρ < 1, homophily < 0",
        "ρ ≥ 30",
        "homophily < 0.2, links tell",
        "homophily < 0.2, features tell",
    ]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--only", "karate"), "no graph has 'karate' in its name; known: squirrel, facebook, "),
        (("--jobs", "0"), "--jobs must be at least 1, got 0"),
        (("--data", "nowhere"), "nowhere is not a folder"),
    ],
)
def test_wrong_usage_is_refused(words, error, tmp_path):
    answer = call("reproduce", "defaults", *words, cwd=tmp_path)
    assert answer.code == 2
    assert error in answer.err


def test_what_has_no_file_is_left_out_and_the_table_is_of_what_is_there(tmp_path):
    answer = call("reproduce", "defaults", "--only", "humango", cwd=tmp_path)
    assert answer.code == 0
    assert answer.err == "left out without a folder that holds their npz files: humango\n"
    assert "|ρ < 1, homophily ≥ 0|gcnii|–|" in answer.out
