"""Help, version, and the flags that are made of the settings."""

import dataclasses
import inspect
import re
import subprocess
import sys

import pytest
from support.command_line import call, run

import gcnii
from gcnii.cli.options import Tables
from gcnii.cli.portfolio import Running
from gcnii.cli.train import train
from gcnii.cli.tune import tune
from gcnii.nn import MODELS
from gcnii.train.recipe import Recipe

OWN = {
    "model",
    "preset",
    "effort",
    "refit",
    "budget",
    "runs",
    "seed",
    "split",
    "device",
    "out",
    "overwrite",
    "json",
    "offline",
    "tables",
    "threads",
    "calibrate",
    "log",
    "tensorboard",
    "quiet",
    "explain_settings",
    "study",  # shown as --settings
}
TUNE = {
    *("budget", "trials", "models", "seeds", "metric", "storage", "jobs", "slurm", "out"),
    *("device", "threads", "json", "quiet", "tables", "offline"),
}


def test_help_names_every_command(tmp_path):
    answer = run("--help", cwd=tmp_path)
    assert (answer.code, answer.err) == (0, "")
    assert re.findall(r"^│ (\w+) ", answer.out, re.MULTILINE) == [
        *("data", "demo", "doctor", "embed", "evaluate", "explain", "export", "models", "plan"),
        *("predict", "report", "serve", "train", "tune", "bench", "reproduce", "theory"),
    ]


def test_without_a_command_help_is_printed(tmp_path):
    assert call(cwd=tmp_path) == call("--help", cwd=tmp_path)


def test_the_version_is_that_of_the_package(tmp_path):
    assert call("--version", cwd=tmp_path) == (0, f"{gcnii.__version__}\n", "")


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        pytest.param(["--version"], marks=pytest.mark.slow),
        pytest.param(["data", "list"], marks=pytest.mark.slow),
        ["data", "show", "cora"],
        pytest.param(["bench", "--help"], marks=pytest.mark.slow),
        ["plan", "papers100M", "--device", "h200"],
    ],
    ids=" ".join,
)
def test_commands_that_need_no_torch_do_not_import_it(words, tmp_path):
    script = "import sys, gcnii.cli; gcnii.cli.main(); sys.exit('torch' in sys.modules)"
    assert (
        subprocess.run(
            [sys.executable, "-c", script, *words], stdout=subprocess.DEVNULL, cwd=tmp_path
        ).returncode
        == 0
    )


def model_settings():
    return {
        parameter.name
        for model in MODELS.values()
        for parameter in inspect.signature(model).parameters.values()
        if parameter.kind == parameter.KEYWORD_ONLY
    }


@pytest.mark.parametrize(("command", "own"), [(train, OWN), (tune, TUNE)])
def test_every_setting_of_every_model_and_of_the_recipe_is_a_flag(command, own):
    flags = [
        p.name for p in inspect.signature(command).parameters.values() if p.kind == p.KEYWORD_ONLY
    ]
    recipe = {field.name for field in dataclasses.fields(Recipe)}
    running = {field.name for field in dataclasses.fields(Running)} if command is train else set()
    assert running <= own
    assert sorted({*flags} - {"how"} | running) == sorted(own | model_settings() | recipe)


def shown_flags(*words, cwd):
    return re.findall(r"^│ (?:\* )?--([a-z-]+)", call(*words, cwd=cwd).out, re.MULTILINE)


@pytest.mark.parametrize(("command", "own"), [("train", OWN), ("tune", TUNE)])
def test_help_all_shows_every_flag_once_with_a_sentence(command, own, tmp_path):
    shown = shown_flags(command, "--help-all", cwd=tmp_path)
    tables = {field.name for field in dataclasses.fields(Tables)}
    recipe = {field.name for field in dataclasses.fields(Recipe)}
    wanted = own - {"tables"} | tables | model_settings() | recipe
    named = {"settings" if name == "study" else name.replace("_", "-") for name in wanted}
    assert sorted(shown) == sorted(named)
    text = call(command, "--help-all", cwd=tmp_path).out
    assert "L2 penalty on the convolutions (the paper's L2_c)." in text


@pytest.mark.parametrize("command", ["train", "tune", "doctor"])
def test_help_shows_about_a_dozen_flags_and_where_the_others_are(command, tmp_path):
    text = call(command, "--help", cwd=tmp_path).out
    shown = shown_flags(command, "--help", cwd=tmp_path)
    assert 10 <= len(shown) <= 16
    assert not {"decay-conv", "categorical", "fanout"} & set(shown)
    assert f"gcnii {command} --help-all" in text


def test_the_flags_of_the_rest_are_in_groups_that_say_who_needs_them(tmp_path):
    text = call("train", "--help-all", cwd=tmp_path).out
    titles = re.findall(r"^╭─ (.*?) ─", text, re.MULTILINE)
    assert titles[:2] == ["Arguments", "Parameters"]
    assert len(titles) == 10
    assert all(title.startswith("If ") for title in titles[2:])
    assert text.index("If classes are rare") < text.index("--class-weight")


def test_flags_of_tables_are_the_point_of_data_check(tmp_path):
    assert "categorical" in shown_flags("data", "check", "--help", cwd=tmp_path)


def test_completion_is_installed_for_bash_and_completes_commands_and_flags(tmp_path, monkeypatch):
    script = tmp_path / "gcnii.sh"
    monkeypatch.setenv("HOME", str(tmp_path))
    answer = call("--install-completion", "--shell", "bash", "-o", script, cwd=tmp_path)
    assert answer.code == 0, answer.err
    ask = "source {}; COMP_WORDS=({}); COMP_CWORD={}; _gcnii; echo ${{COMPREPLY[@]}}"
    for words, last, wanted in (("gcnii ev", 1, "evaluate"), ("gcnii train --lay", 2, "--layers")):
        command = ["bash", "-c", ask.format(script, words, last)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout.split() == [wanted]
