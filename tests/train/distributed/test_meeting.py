"""Processes that were given different things all refuse to train, and say what differs."""

import json
import os
import shutil
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from support.processes import TESTS
from support.together import graph_of
from support.waiting import PATIENCE
from torch.distributed import HashStore

import gcnii
from gcnii.data.formats import packed
from gcnii.errors import InputError
from gcnii.train.distributed import world
from gcnii.train.distributed.shard import pack

SMALL = ("--layers", "2", "--width", "4", "--epochs", "2", "--device", "cpu", "--threads", "1")
JOINING = 1.5  # seconds for which a process waits for one that never comes, instead of 50
SOON = PATIENCE / 2  # seconds; who is not told waits for PATIENCE or more
SAME = "start all of them with the same graph, settings, seeds, output folder and version"


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def nodes(changed=()):
    """A table of 24 nodes in a ring."""
    rows = [
        [f"n{i}", i % 7, ("a", "b")[i % 2], ("train", "val", "test")[i // 2 % 3]] for i in range(24)
    ]
    for i, place, value in changed:
        rows[i][place] = value
    return "\n".join(["id,x,label,split", *(",".join(map(str, row)) for row in rows)])


def write_folder(folder, **about):
    folder.mkdir(parents=True)
    (folder / "nodes.csv").write_text(nodes(**about))
    edges = "\n".join(f"n{i},n{(i + 1) % 24}" for i in range(24))
    (folder / "edges.csv").write_text(f"source,target\n{edges}\n")
    return folder


def case_of(tmp_path, name, one=(), other=(), graphs=("g", "g"), outs=None, **about):
    """Two command lines that differ as this says."""
    outs = outs or [name, name]
    ranks = [
        ["train", str(tmp_path / graph), *SMALL, "--out", str(tmp_path / out), "--quiet", *words]
        for graph, out, words in zip(graphs, outs, (one, other), strict=True)
    ]
    version = [gcnii.__version__] * 2
    usual = {"ranks": ranks, "env": [{}, {}], "version": version, "port": free_port()}
    return usual | {"joining": PATIENCE, "dies": None} | about


@pytest.fixture(scope="module")
def met(tmp_path_factory):
    """name → what the two processes of each case came to."""
    path = tmp_path_factory.mktemp("meetings")
    write_folder(path / "g")
    write_folder(path / "cell", changed=[(3, 1, 6.5)])
    write_folder(path / "label", changed=[(3, 2, "a")])
    renamed = [(i, 2, "c") for i in range(1, 24, 2)]
    write_folder(path / "renamed", changed=renamed)
    graph = graph_of(n=60)
    pack(graph, path / "parts", 2)
    pack(graph, path / "four", 4)
    X = graph.X.copy()
    X[7, 0] += 1
    pack(replace(graph, X=X), path / "stale", 2)
    packed.save(graph, path / "whole.safetensors")
    shutil.copytree(path / "parts", path / "damaged")
    (path / "damaged" / "part-1.safetensors").write_bytes(b"cut short")
    (path / "used").mkdir()
    (path / "used" / "thesis.tex").write_text("mine")
    silent = socket.socket()
    silent.bind(("127.0.0.1", 0))
    silent.listen()
    cases = cases_in(path, silent.getsockname()[1])
    try:
        yield run(path, cases)
    finally:
        silent.close()


def cases_in(path, silent):
    def case(name, *words, **about):
        return case_of(path, name, *words, **about)

    def late(name, *words, **about):
        return case(name, *words, **about, joining=JOINING)

    port = [{}, {"MASTER_PORT": str(free_port())}]
    return {
        "alike": case("alike"),
        "parts alike": case("parts-alike", graphs=("parts", "parts")),
        "threads": case("threads", ["--memory", "keep"], ["--memory", "recompute"]),
        "cell": case("cell-out", graphs=("g", "cell")),
        "label": case("label-out", graphs=("g", "label")),
        "renamed": case("renamed-out", graphs=("g", "renamed")),
        "stale parts": case("stale-out", graphs=("parts", "stale")),
        "other cut": case("cut-out", graphs=("parts", "four")),
        "parts and whole": case("mixed-out", graphs=("parts", "whole.safetensors")),
        "seed": case("seed-out", [], ["--seed", "1"]),
        "runs": case("runs-out", ["--runs", "2"], ["--runs", "3"]),
        "lr": case("lr-out", [], ["--lr", "0.5"]),
        "dropout": case("dropout-out", ["--dropout", "0.25"], ["--dropout", "0.5"]),
        "model": case("model-out", ["--model", "gcnii"], ["--model", "gcnii-star"]),
        "calibrate": case("calibrate-out", [], ["--calibrate", "none"]),
        "version": case("version-out", version=[gcnii.__version__, "0.9.9"]),
        "folder": case("folder", outs=["one", "two"]),
        "bad flag": late("flag-out", [], ["--no-such-flag"]),
        "bad setting": case("setting-out", [], ["--dropout", "7"]),
        "no graph": case("graph-out", graphs=("g", "missing")),
        "no graph of rank 0": case("graph0-out", graphs=("missing", "g")),
        "damaged part": case("damaged-out", graphs=("parts", "damaged")),
        "used folder": case("used", outs=["used", "used"]),
        "port": late("port-out", env=port),
        "silent port": late("silent-out", env=[{}, {"MASTER_PORT": str(silent)}]),
        "port taken": late("taken-out", port=silent),
        "bad port": late("bad-port", env=[{}, {"MASTER_PORT": "http"}]),
        "rank": late("rank-out", env=[{}, {"RANK": "2"}]),
        "negative rank": late("negative-out", env=[{}, {"RANK": "-1"}]),
        "absent": late("absent-out") | {"ranks": [late("absent-out")["ranks"][0], None]},
        "size": late("size-out", env=[{}, {"WORLD_SIZE": "3"}]),
        "killed": case("killed-out", dies=1),
    }


def run(path, cases):
    (path / "cases.json").write_text(json.dumps([*cases.values()]))
    script, answers = TESTS / "support" / "meetings.py", path / "answers"
    answers.mkdir()
    env = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    words = [sys.executable, str(script)]
    both = [
        subprocess.Popen([*words, str(rank), path / "cases.json", answers], env=env, **pipes)
        for rank in range(2)
    ]
    printed = [one.communicate(timeout=PATIENCE)[0] for one in both]
    assert [one.returncode for one in both] == [0, 9], printed
    assert "gloo" not in "".join(printed)

    def read(i, rank):
        answer = answers / f"{i}.{rank}.json"
        return json.loads(answer.read_text()) if answer.exists() else None

    found = [[read(i, rank) for rank in range(2)] for i in range(len(cases))]
    return dict(zip(cases, found, strict=True)) | {"path": path}


@pytest.mark.slow
def test_processes_that_were_given_the_same_train(met):
    for name in ("alike", "parts alike", "threads"):
        assert [one["code"] for one in met[name]] == [0, 0], met[name]
    assert met["alike"][0]["out"].count("test accuracy") == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("cell", "things: graph (rank 0: "),
        ("label", "things: graph (rank 0: "),
        ("renamed", "the graph's classes (rank 0: "),
        ("stale parts", "things: graph (rank 0: "),
        ("other cut", "the graph's parts (rank 0: "),
        ("parts and whole", "the graph's parts (rank 0: "),
        ("seed", "things: seeds (rank 0: [0]; rank 1: [1])"),
        ("runs", "things: seeds (rank 0: [0, 1]; rank 1: [0, 1, 2])"),
        ("lr", "things: lr (rank 0: 0.01; rank 1: 0.5)"),
        ("dropout", "things: dropout (rank 0: 0.25; rank 1: 0.5)"),
        ("model", "things: model (rank 0: gcnii; rank 1: gcnii-star)"),
        ("calibrate", "things: calibrate (rank 0: temperature; rank 1: none)"),
        ("version", "things: version of gcnii (rank 0: "),
        ("folder", "things: output folder (rank 0: "),
    ],
)
def test_all_processes_refuse_what_differs_and_name_it(name, sentence, met):
    for one in met[name]:
        assert one["code"] == 2
        assert sentence in one["errors"]
        assert SAME in one["errors"]
        assert "run the same command again" not in one["errors"]
        assert len(one["errors"].splitlines()) == 1
        assert one["seconds"] < SOON
    assert not any(met["path"].glob(f"{name}-out/*"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "own", "other"),
    [
        (
            "bad flag",
            "Unknown option: --no-such-flag",
            "rank 1 of 2 did not start within 1.5 sec",
        ),
        ("bad setting", "dropout must be", "rank 1: dropout must be"),
        ("no graph", "missing", "(so the other processes ended, too)"),
        ("damaged part", "part-1.safetensors is damaged", "rank 1: "),
        ("port", "rank 1 did not find rank 0 at 127.0.0.1:", "rank 1 of 2 did not start within"),
        ("silent port", "rank 1 found something other than rank 0 at 127", "rank 1 of 2 did not"),
        ("bad port", "MASTER_PORT must be an integer from 0 to 65535, got 'http'", "rank 1 of 2"),
        ("rank", "RANK must be an integer from 0 to 1, got '2'", "rank 1 of 2 did not start"),
        ("negative rank", "RANK must be an integer from 0 to 1, got '-1'", "rank 1 of 2 did not"),
        ("size", "WORLD_SIZE is 3 for rank 1 and 2 for rank 0", "rank 1 of 2 did not start"),
        ("killed", None, "rank 1 of 2 ended before the training began, and so did the others; see"),
        ("absent", None, "rank 1 of 2 did not start within 1.5 seconds; see what it printed"),
    ],
)
def test_a_process_that_fails_before_the_meeting_is_not_waited_for(name, own, other, met):
    first, second = met[name]
    assert own is None or own in second["errors"]
    assert other in first["errors"]
    assert first["code"] != 0
    assert "run the same command again" not in first["errors"]
    assert len(first["errors"].splitlines()) == 1
    assert first["seconds"] < SOON


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "own", "other"),
    [
        ("no graph of rank 0", "missing", "rank 0: "),
        ("used folder", "used holds 'thesis.tex', which", "rank 0: "),
        ("port taken", "rank 0 cannot listen at 127.0.0.1:", "found something other than rank 0"),
    ],
)
def test_what_rank_0_refuses_is_told_to_the_others(name, own, other, met):
    first, second = met[name]
    assert own in first["errors"]
    assert first["code"] == 2
    assert other in second["errors"]
    assert second["code"] != 0


def met_by(store, *ranks):
    """What threads that meet as these ranks of two come to."""
    with ThreadPoolExecutor() as pool:
        each = [pool.submit(world._met, store, rank, 2) for rank in ranks]
        return [one.exception() or one.result() for one in each]


def test_two_processes_of_one_rank_are_refused():
    found = met_by(HashStore(), 0, 1, 1)
    (error,) = [one for one in found if isinstance(one, Exception)]
    assert isinstance(error, InputError)
    assert str(error) == "two processes have RANK 1; number them from 0 to 1"


def test_processes_that_were_restarted_read_nothing_of_those_before(monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "True")
    store = HashStore()
    one, _ = met_by(store, 0, 1)
    one.set("address", "of a process that has ended")
    again = met_by(store, 0, 1)
    assert not any(other.check(["address"]) for other in again)
    again[0].set("address", "here")
    assert again[1].get("address") == b"here"


def test_a_sentence_names_at_most_three_things_and_groups_the_ranks():
    notes = [{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 0}] * 2
    notes += [{"a": 2, "b": 2, "c": 2, "d": 2, "e": 2, "f": 0}]
    three = ", ".join(f"{name} (ranks 0, 1: 1; rank 2: 2)" for name in "abc")
    assert f"different things: {three} and 2 more; start" in world._difference(notes)
    assert world._difference([{"a": 1}, {}]).count("a (rank 0: 1; rank 1: not set)") == 1
    assert world._difference(notes[:2]) == ""
