"""gcnii demo, with fewer epochs and depths."""

import json
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
    short = tuple(step for step in demo.STEPS if step.layers in (2, 64))
    monkeypatch.setattr(demo, "STEPS", short)


def test_the_demo_prints_a_table_and_leaves_a_bundle_and_a_plot(tmp_path):
    answer = call("demo", "--out", "my runs/demo", cwd=tmp_path)
    assert (answer.code, answer.err) == (0, "")
    assert [line[2:19].strip() for line in answer.out.splitlines() if line.startswith("│")] == [
        "GCNII, 64 layers",
        "GCN, 2 layers",
        "GCN, 64 layers",
    ]
    over, where, following = answer.out.splitlines()[-3:]
    assert over.startswith("Over-smoothing: with 64 layers a GCN falls from ")
    assert where == "bundle my runs/demo, plot my runs/demo/curves.png"
    assert following.startswith(
        "Try next: gcnii train cora --runs 3, gcnii predict 'my runs/demo', or gcnii train "
    )
    folder = tmp_path / "my runs/demo"
    assert files(folder) == ["card.md", "curves.csv", "curves.png", "model.safetensors", "run.json"]
    assert (folder / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert open_bundle(folder).plan.model_settings["layers"] == 64


def test_the_demo_prints_one_json_document(tmp_path):
    document = json.loads(call("demo", "--json", cwd=tmp_path).out)
    assert (document["graph"], document["bundle"]) == ("digits", "runs/demo")
    assert set(document["test"]) == {
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
