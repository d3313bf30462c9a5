"""gcnii models."""

import json

from support.command_line import call

from gcnii.nn import MODELS


def test_models_lists_every_model_with_its_paper(tmp_path, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    listed = json.loads(call("models", "--json", cwd=tmp_path).out)
    assert [model["name"] for model in listed] == list(MODELS)
    assert listed[0]["settings"] == {
        "layers": 64,
        "width": 64,
        "alpha": 0.1,
        "lam": 0.5,
        "dropout": 0.6,
    }
    assert listed[0]["tables"] == ["Table 2", "Table 3", "Table 5", "Figure 2"]
    assert all(model["paper"] and model["equation"] for model in listed)
    table = call("models", cwd=tmp_path).out.split("\n\n")[1].splitlines()
    assert [line.split()[0] for line in table] == ["model", *MODELS]
    assert table[1].strip().endswith("T2 T3 T5 F2")
    assert all(model["paper"] in line for model, line in zip(listed, table[1:], strict=True))


def test_models_shows_the_equation_of_one(tmp_path):
    assert "H0) ((1-β) I + β W)" in call("models", "gcnii", cwd=tmp_path).out
    assert "P̃" not in call("models", cwd=tmp_path).out


def test_models_says_first_which_to_use_when(tmp_path):
    heads, *lines = call("models", cwd=tmp_path).out.split("\n\n")[0].splitlines()
    assert heads.split() == ["use", "when"]
    assert lines[0].split() == ["gcnii", "start", "here"]
    assert {"mlp", "gcn", "gcnii-plus", "cluster-gcn"} <= {line.split()[0] for line in lines}


def test_models_shows_one_model_with_its_settings(tmp_path):
    text = call("models", "sgc", cwd=tmp_path).out
    assert "Wu et al. 2019" in text
    assert "layers 2" in text
    assert "lr 0.2, decay_dense 1e-05, epochs 100, monitor last" in text


def test_models_suggests_a_name_for_a_misspelt_one(tmp_path):
    answer = call("models", "gcni", cwd=tmp_path)
    assert answer.code == 2
    assert "no model 'gcni'; did you mean 'gcnii'?" in answer.err
