"""gcnii demo, with fewer epochs and depths."""

import json
import re
import signal
from functools import partial

import pytest
from support.command_line import Answer, call, files

from gcnii.cli import demo
from gcnii.results.bundle import open_bundle
from gcnii.results.fit import Session


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    monkeypatch.setattr(demo, "EPOCHS", 2)
    monkeypatch.setattr(demo, "GIVEN", {"epochs": 2})
    short = tuple(step for step in demo.STEPS if step.layers in (2, 64))
    monkeypatch.setattr(demo, "STEPS", short)


def test_the_demo_shows_what_the_graph_and_what_depth_add(monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "80")
    answer = call("demo", "--out", "my runs/demo", cwd=tmp_path)
    assert (answer.code, answer.err) == (0, "")
    lines = [line.strip() for line in answer.out.splitlines()]
    assert all(len(line) <= 80 for line in lines[:-1])  # the last has the name of the folder
    shown = [line.split("  ")[0] for line in lines if line.endswith(tuple("0123456789"))]
    assert shown == [
        *("columns alone (MLP)", "columns and calls (GCNII)"),
        *("GCNII, 64 layers", "GCN, 2 layers", "GCN, 64 layers"),
    ]
    text = " ".join(lines)
    before, after = re.findall(r"(c\d{4}) (?:leaves|is (?:not )?predicted as leaves) ", text)
    assert before == after
    assert "Over-smoothing: with 64 layers a GCN falls from " in text
    assert lines[-3:-1] == ["plot: my runs/demo/curves.png", "bundle: my runs/demo"]
    assert lines[-1].startswith("Try next: gcnii report run 'my runs/demo', or gcnii train ")
    folder = tmp_path / "my runs/demo"
    assert files(folder) == ["card.md", "curves.csv", "curves.png", "model.safetensors", "run.json"]
    assert (folder / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert open_bundle(folder).origin.source == "customers"


def test_the_demo_prints_one_json_document(tmp_path):
    document = json.loads(call("demo", "--json", cwd=tmp_path).out)
    assert (document["bundle"], document["plot"]) == ("runs/demo", "runs/demo/curves.png")
    customers = document["customers"]
    assert set(customers["test"]) == {"mlp", "gcnii"}
    assert customers["explained"]["label"] == "leaves"
    assert set(document["digits"]["test"]) == {
        "GCNII, 2 layers",
        "GCNII, 64 layers",
        "GCN, 2 layers",
        "GCN, 64 layers",
    }


@pytest.mark.usefixtures("listening")
def test_ctrl_c_ends_the_whole_demo(monkeypatch, tmp_path):
    watched = partial(Session, callbacks=[lambda now: signal.raise_signal(signal.SIGINT)])
    monkeypatch.setattr(demo, "Session", watched)
    stopping = "gcnii: stopping after this epoch; press Ctrl-C again to stop now\n"
    assert call("demo", cwd=tmp_path) == Answer(1, "", f"{stopping}gcnii: stopped\n")
    assert files(tmp_path) == []
