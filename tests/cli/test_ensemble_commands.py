"""Every command that takes a bundle takes that of an ensemble, and one of its members."""

import json

import pytest
from support.command_line import call

import gcnii
from tests.support.neighbours import neighbours

SHORT = ("--effort", "quick", "--epochs", "8", "--device", "cpu")
NAMED = {"features": tuple("0123"), "classes": ("cat", "dog"), "name": "own"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ensembles")
    gcnii.save(neighbours(**NAMED), folder / "own.safetensors")
    return folder


@pytest.fixture(scope="module")
def trained(folder):
    return call("train", "own.safetensors", *SHORT, "--out", "bundle", cwd=folder)


@pytest.fixture(scope="module")
def ask(folder, trained):
    """Call a command on the bundle."""
    assert trained.code == 0, trained.err

    def asked(command, *words):
        return call(*command.split(), "bundle", *words, cwd=folder)

    return asked


@pytest.fixture(scope="module")
def board(folder, trained):
    return gcnii.open_bundle(folder / "bundle").leaderboard()


def test_the_leaderboard_fits_a_terminal_and_names_each_member_once(trained, board):
    table = trained.out.partition("\n\n")[0].splitlines()
    assert max(len(line.rstrip()) for line in table) <= 80
    names = [
        line.split()[0] for line in table if line.split()[0] in {one["member"] for one in board}
    ]
    assert names == [one["member"] for one in board]


def test_training_ends_with_whether_the_graph_helps(trained):
    assert sum(line.startswith("The graph ") for line in trained.out.splitlines()) == 1
    assert trained.err == ""


def test_json_is_the_whole_output_and_says_the_same(folder, trained):
    answer = call("train", "own.safetensors", *SHORT, "--out", "bundle", "--json", cwd=folder)
    document = json.loads(answer.out)
    assert document["model"] == "auto"
    assert document["leaderboard"][-1]["member"] == "ensemble"
    assert document["graph_helps"]["sentence"] in " ".join(trained.out.split())
    assert {"difference", "low", "high"} <= document["graph_helps"].keys()


@pytest.mark.parametrize("command", ["predict", "evaluate --no-baselines", "report run"])
def test_commands_take_one_member_by_its_name(ask, board, folder, command):
    word = [] if command != "report run" else ["--out", folder / "member.html"]
    answer = ask(command, "--member", board[0]["member"], "--json", *word)
    assert answer.code == 0, answer.err
    assert json.loads(answer.out)["graph"] == "own"


def test_a_member_that_is_not_there_is_refused_with_those_that_are(ask, board):
    answer = ask("predict", "--member", "nosuch")
    assert answer.code == 2
    assert "there is no member 'nosuch'" in answer.err
    assert all(one["member"] in answer.err for one in board[:-1] if one["weight"])


def test_a_bundle_of_one_model_has_no_members(folder, trained):
    small = ("--layers", 2, "--width", 8, "--epochs", 2, "--device", "cpu")
    call("train", "own.safetensors", "--model", "gcn", *small, "--out", "one", cwd=folder)
    answer = call("evaluate", "one", "--member", "trees", cwd=folder)
    assert answer.code == 2
    assert "this is one model, gcn, 2 layers, without members such as 'trees'" in answer.err
    assert len(answer.err.splitlines()) == 1


def test_an_explanation_names_all_members_of_weight(ask, board):
    document = json.loads(ask("explain", 3, "--json").out)
    members = document["members"]["attributed"] | document["members"]["not_attributed"]
    assert members.keys() == {one["member"] for one in board[:-1] if one["weight"]}


def test_the_table_of_an_evaluation_calls_it_the_ensemble(ask):
    assert ask("evaluate", "--no-baselines").out.startswith("ensemble on own: test nodes")
