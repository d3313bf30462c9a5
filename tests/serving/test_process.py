"""gcnii serve as a process: signals, reload, and what it prints."""

import json
import os
import re
import shutil
import signal
import threading
import urllib.request
import warnings

import pytest
from support.command_line import call, finish, start
from support.run_pages import a_graph, trained
from support.waiting import wait_until

import gcnii
from gcnii.serving.records import Limits
from gcnii.serving.served import Served
from gcnii.serving.server import Place, run

pytestmark = pytest.mark.slow


def ask(address, path, document=None):
    body = None if document is None else json.dumps(document).encode()
    request = urllib.request.Request(address + path, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


@pytest.fixture(scope="module")
def bundles(tmp_path_factory):
    """Two bundles of one graph, and the graph."""
    folder = tmp_path_factory.mktemp("bundles")
    gcnii.save(a_graph(names=("a",)), folder / "graph.safetensors")
    graph = gcnii.load(folder / "graph.safetensors")
    for name, layers in (("first", 2), ("second", 4)):
        trained(graph, layers=layers).save(folder / name)
    return folder


@pytest.fixture
def serving(bundles, tmp_path):
    """`serving(*flags)`: the process, its address, and the bundle that it serves."""
    processes = []

    def begin(*flags):
        shutil.copytree(bundles / "first", tmp_path / "bundle")
        process = start("serve", "bundle", "--port", "0", *flags, cwd=tmp_path)
        processes.append(process)
        line = process.stderr.readline()
        while "serving at" not in line:
            assert line, process.communicate()
            line = process.stderr.readline()
        return process, re.search(r"http://\S+", line)[0], tmp_path / "bundle"

    yield begin
    for process in processes:
        if process.poll() is None:
            process.kill()
            process.communicate()


def replace(bundle, other):
    for path in other.iterdir():
        shutil.copy(path, bundle / path.name)


def test_sigterm_answers_what_was_asked_and_ends_with_0(serving):
    process, address, _ = serving()
    found = []
    asking = threading.Thread(target=lambda: found.append(ask(address, "/explain", {"id": "a 1"})))
    asking.start()
    wait_until(lambda: "in_flight 2" in in_flight(address) or found)
    process.send_signal(signal.SIGTERM)
    asking.join()
    answer = finish(process)
    assert (answer.code, answer.out) == (0, "")
    assert "Traceback" not in answer.err
    assert found[0]["explanation"]["node"] == "a 1"


def in_flight(address):
    with urllib.request.urlopen(address + "/metrics", timeout=60) as answer:
        return answer.read().decode()


@pytest.mark.parametrize("way", ["SIGHUP", "--watch"])
def test_a_bundle_that_changes_is_replaced_as_a_whole(serving, bundles, way):
    process, address, bundle = serving(*(["--watch"] if way == "--watch" else []))
    before = ask(address, "/predict", {"ids": ["a 1"]})
    stop, answers = threading.Event(), []

    def keep_asking():
        while not stop.is_set():
            answers.append(ask(address, "/predict", {"ids": ["a 1"]}))

    asking = threading.Thread(target=keep_asking)
    asking.start()
    replace(bundle, bundles / "second")
    if way == "SIGHUP":
        process.send_signal(signal.SIGHUP)
    wait_until(lambda: ask(address, "/model")["model"] != before["model"])
    wait_until(lambda: answers[-1]["model"] != before["model"])
    stop.set()
    asking.join()
    assert ask(address, "/model")["title"] == "gcnii, 4 layers"
    kinds = {json.dumps(one) for one in answers}
    assert len(kinds) == 2  # the old answer or the new one, and nothing between


def test_a_bundle_that_cannot_be_loaded_leaves_the_old_one(serving):
    process, address, bundle = serving()
    before = ask(address, "/predict", {"ids": ["a 1"]})
    (bundle / "run.json").write_text("{}")
    process.send_signal(signal.SIGHUP)
    wait_until(lambda: 'reloads_total{result="failed"} 1' in in_flight(address))
    assert ask(address, "/predict", {"ids": ["a 1"]}) == before
    process.send_signal(signal.SIGINT)
    answer = finish(process)
    assert answer.code == 0
    assert "gcnii: the old bundle is still served: BundleError" in answer.err


def test_a_bundle_whose_weights_come_after_its_record_is_loaded_when_they_are_there(
    serving, bundles
):
    _, address, bundle = serving("--watch")
    shutil.copy(bundles / "second" / "run.json", bundle)
    wait_until(lambda: 'reloads_total{result="failed"} 1' in in_flight(address))
    shutil.copy(bundles / "second" / "model.safetensors", bundle)
    wait_until(lambda: ask(address, "/model")["title"] == "gcnii, 4 layers")


@pytest.fixture
def first(bundles):
    graph = gcnii.load(bundles / "graph.safetensors")
    return Served.of(gcnii.open_bundle(bundles / "first"), graph, "first", device="cpu")


def test_a_bundle_that_changes_while_it_is_loaded_is_loaded_once_more(first, tmp_path):
    bundle, loaded = tmp_path / "bundle", []
    bundle.mkdir()

    def load():
        loaded.append(first)
        if len(loaded) == 1:
            (bundle / "run.json").write_text("changed")
        else:
            os.kill(os.getpid(), signal.SIGTERM)
        return first

    with warnings.catch_warnings():
        run(load, Place(port=0, watch=bundle), Limits())
    assert len(loaded) == 2


def test_sighup_while_a_bundle_is_loaded_loads_it_once_more(first):
    sent = [signal.SIGHUP, signal.SIGTERM]

    def load():
        os.kill(os.getpid(), sent.pop(0))
        return first

    with warnings.catch_warnings():
        run(load, Place(port=0), Limits())
    assert sent == []


def test_with_log_there_is_a_line_for_each_request(serving):
    process, address, _ = serving("--log")
    ask(address, "/health")
    process.terminate()
    assert re.search(r"^gcnii: GET /health 200 [\d.]+ ms$", finish(process).err, re.MULTILINE)


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--host", "0.0.0.0"], "0.0.0.0 can be reached from other machines, so a token is needed"),
        (["--port", "70000"], "a port is a number from 0 to 65535, got 70000"),
        (["--token-file", "none"], "none cannot be read as a token"),
        (["--most-rows", "0"], "--most-body, --most-rows and --seconds must be finite and above 0"),
        (["--seconds", "inf"], "--most-body, --most-rows and --seconds must be finite and above 0"),
        (["--coverage", "2"], "coverage"),
        (["--radius", "-1"], "radius"),
    ],
)
def test_wrong_flags_get_a_sentence(bundles, flags, sentence):
    answer = call("serve", "first", *flags, cwd=bundles)
    assert answer.code == 2
    assert sentence in answer.err
    assert len(answer.err.splitlines()) == 1
