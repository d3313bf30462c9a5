"""After Ctrl-C or kill -9 the same command goes on with a portfolio, and trains nothing twice."""

import json
import signal

import pytest
from support.command_line import call, finish, start
from support.waiting import wait_until

from gcnii.files import claimed
from tests.support.neighbours import neighbours

# The command line with a checkpoint after every epoch, and a little time to be stopped in.
SLOWLY = """
import time
from gcnii.cli import main
from gcnii.train import group
group.SAVE_EVERY, group.SAVE_SHARE, save = 0.0, float("inf"), group.Checkpoint.save
def slowly(checkpoint, path):
    save(checkpoint, path)
    time.sleep(0.05)
group.Checkpoint.save = slowly
main()
"""
DYING = """
import os, signal
from gcnii.cli import main
from gcnii.results import bundle
write = bundle.write_document
def dies(path, document):
    if path.name == "run.json" and path.parent.parent.name != "members":
        os.kill(os.getpid(), signal.SIGKILL)
    return write(path, document)
bundle.write_document = dies
main()
"""
WORDS = ("--effort", "quick", "--epochs", 6, "--budget", "10m", "--device", "cpu", "--json")
CHECKPOINT = "checkpoint.safetensors"


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A graph of one's own without a split, as tables."""
    graph, folder = neighbours(), tmp_path_factory.mktemp("shop")
    rows = [
        f"n{i},{','.join(map(repr, x))},c{y}"
        for i, (x, y) in enumerate(zip(graph.X.tolist(), graph.labels, strict=True))
    ]
    edges = [f"n{u},n{v}" for u, v in graph.edges.T if u < v]
    (folder / "nodes.csv").write_text("\n".join(["id,a,b,c,d,label", *rows]) + "\n")
    (folder / "edges.csv").write_text("\n".join(["source,target", *edges]) + "\n")
    return folder


def train(shop, out):
    """The command in this process, to its end."""
    return call("train", shop, *WORDS, "--out", out, cwd=shop)


def stop(shop, out, number, when):
    """Train in a process of its own, and signal it as soon as it is so far."""
    process = start("train", shop, *WORDS, "--out", out, cwd=shop, program=("-c", SLOWLY))
    wait_until(lambda: process.poll() is not None or when(out / "members"))
    assert process.poll() is None, finish(process)
    process.send_signal(number)
    return finish(process)


def seconds(out):
    """How long each run of each member took, which would differ if it were trained again."""
    paths = [*(out / "members").glob("*/run.json"), *(out / "members").glob("*/member.json")]
    found = {path.parent.name: json.loads(path.read_text())["runs"] for path in paths}
    return {
        name: [run["seconds"] for run in runs]
        for name, runs in found.items()
        if not name.endswith("-smoothed")  # which is not trained
    }


def scores(answer):
    """What was trained and how well, without times."""
    document = json.loads(answer.out)
    board = [(row["member"], row["val"], row["weight"]) for row in document["leaderboard"]]
    return board, document["test_mean"], document["interrupted"], document["left_out"]


@pytest.fixture(scope="module")
def whole(shop, tmp_path_factory):
    """The answer to a command that nothing stopped, and the folder."""
    out = tmp_path_factory.mktemp("whole") / "run"
    return train(shop, out), out


STATES = {
    "while a network trains": lambda members: [*members.glob(f"*/{CHECKPOINT}")],
    "while it trains another fold": lambda members: [
        path for path in members.glob(f"*/{CHECKPOINT}") if (path.parent / "run.json").exists()
    ],
    "after a network": lambda members: [*members.glob("*/run.json")],
}


CASES = [  # one of them in CI, the others before a release
    pytest.param(
        state,
        number,
        marks=pytest.mark.slow
        if (state, number) == ("while it trains another fold", signal.SIGKILL)
        else pytest.mark.long,
    )
    for state in STATES
    for number in (signal.SIGINT, signal.SIGKILL)
]


@pytest.mark.parametrize(("state", "number"), CASES)
def test_the_same_command_goes_on_and_ends_with_the_same_scores(
    shop, whole, tmp_path, state, number
):
    out = tmp_path / "run"
    answer = stop(shop, out, number, STATES[state])
    assert answer.code == (1 if number == signal.SIGINT else -number)
    kept = seconds(out)
    assert kept
    again = train(shop, out)
    assert "starting over" not in again.err
    assert scores(again) == scores(whole[0])
    for name, taken in seconds(out).items():
        assert taken[: len(kept.get(name, []))] == kept.get(name, [])


@pytest.mark.slow
def test_ctrl_c_saves_what_there_is(shop, tmp_path):
    out = tmp_path / "run"
    answer = stop(shop, out, signal.SIGINT, STATES["while it trains another fold"])
    assert json.loads(answer.out)["interrupted"]
    assert "run the same command again to resume" in answer.err
    predicted = call("predict", out, "--quiet", cwd=shop)
    assert predicted.code == 0
    assert len(predicted.out.splitlines()) > 160


def test_the_command_again_after_its_end_trains_nothing_and_prints_the_same(shop, whole):
    answer, out = whole
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()}
    again = train(shop, out)
    assert again.out == answer.out
    assert "nothing was trained" in again.err
    assert {path: path.stat().st_mtime_ns for path in before} == before


@pytest.mark.slow
def test_killed_while_the_bundle_is_written_it_is_gone_on_from(shop, whole, tmp_path):
    out = tmp_path / "run"
    process = start("train", shop, *WORDS, "--out", out, cwd=shop, program=("-c", DYING))
    assert finish(process).code == -signal.SIGKILL
    assert not (out / "run.json").exists()
    kept = seconds(out)
    assert scores(train(shop, out)) == scores(whole[0])
    assert seconds(out).items() <= kept.items()


def test_a_folder_that_another_process_trains_into_is_refused(shop, tmp_path):
    out = tmp_path / "run"
    with claimed(out):
        answer = train(shop, out)
    assert answer.code == 2
    assert "is being written to by process" in answer.err


def test_what_was_measured_is_refitted_on_every_label_into_a_second_bundle(shop, whole):
    answer, out = whole
    words = [word for word in WORDS if word != "--json"]
    offer = call("train", shop, *words, "--out", out, cwd=shop).out
    assert "the same command with --refit all" in offer.splitlines()[-1]
    refit = call("train", shop, *WORDS, "--out", out, "--refit", "all", cwd=shop)
    assert scores(refit) == scores(answer)
    folder = json.loads(refit.out)["refit_bundle"]
    assert folder == f"{out}-refit"
    kept = seconds(out.with_name("run-refit"))
    assert kept
    again = call("train", shop, *words, "--out", out, "--refit", "all", cwd=shop)
    assert f"It was trained on every label; {out} is the bundle that was measured." in again.out
    assert seconds(out.with_name("run-refit")) == kept
    refused = call("evaluate", folder, cwd=shop)
    assert refused.code == 2
    assert "trained on every label" in refused.err
