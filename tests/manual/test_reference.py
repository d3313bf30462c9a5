"""The reference names what files really hold, and every command and public name."""

import json
import re

from support.command_line import call
from support.manual import ROOT

import gcnii
from gcnii.data.formats import packed
from gcnii.results import bundle
from gcnii.tuning import closing, question
from gcnii_paper import ledger

FORMATS = (ROOT / "docs/reference/formats.md").read_text("utf-8")
API = (ROOT / "docs/reference/api.md").read_text("utf-8")


def section(title):
    return FORMATS.split(f"\n## {title}\n")[1].split("\n## ")[0]


def named(text):
    return set(re.findall(r"`([a-z_0-9.]+)`", text))


def test_every_key_of_a_bundles_record_is_named_and_no_other(tmp_path):
    gcnii.fit(gcnii.load("csbm", n=60), layers=2, epochs=2).save(tmp_path / "bundle")
    written = json.loads((tmp_path / "bundle" / "run.json").read_text())
    keys = {*bundle.SHAPE, "format", "seal"}
    assert set(written) <= keys
    assert keys | set(bundle.GRAPH) | set(bundle.RUN) <= named(section("Bundle"))
    table = re.findall(r"^\|([^|]*)\|", section("Bundle").split("keys of")[1], re.MULTILINE)
    assert named(" ".join(table)) == keys


def test_every_key_of_an_ensembles_record_is_named():
    keys = {*bundle.ENSEMBLE, "format", "seal", *bundle.FITTED}
    assert keys <= named(section("Bundle of an ensemble"))


def test_every_key_of_a_study_is_named(tmp_path):
    studies = sorted((ROOT / "results/beyond/studies").glob("*.json"))
    study = json.loads(studies[0].read_text())
    assert {*study, *study["trials"][0]} <= named(section("Study"))


def test_every_key_of_a_cell_is_named():
    cells = sorted((ROOT / "results/cells/table2").glob("*.json"))
    cell = json.loads(cells[0].read_text())
    assert {*cell, *cell["runs"][0]} <= named(section("Results"))


def test_versions_are_those_of_the_code():
    table = FORMATS.split("\n## ")[0]
    rows = dict(re.findall(r"^\|([^|]*)\|(\d+)[,|]", table, re.MULTILINE))
    assert {name.split(",")[0]: int(number) for name, number in rows.items()} == {
        "bundle": bundle.FORMAT,
        "packed graph": packed.VERSION,
        "study": closing.FORMAT,
        "ledger": ledger.FORMAT,
        "study's storage": question.VERSION,
    }


def test_what_train_prints_as_json_is_named(tmp_path):
    small = ("--layers", "2", "--width", "4", "--epochs", "2")
    answer = call("train", "csbm", *small, "--json", "--quiet", cwd=tmp_path)
    assert set(json.loads(answer.out)) <= named(section("Bundle").split("train --json")[1])


def test_every_public_name_is_on_the_python_page():
    rooms = ("analysis", "data", "inference", "nn", "__version__")
    shown = re.findall(r"^\.\. auto\w+:: ([\w.]+)", API, re.MULTILINE)
    assert set(dir(gcnii)) - set(rooms) <= set(shown)
