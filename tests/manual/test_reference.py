"""The reference names what files really hold, and every command and public name."""

import inspect
import json
import re
from dataclasses import replace

import pytest
import yaml
from support.command_line import call
from support.manual import PAGES, ROOT, docs_module

import gcnii
from gcnii.data.formats import packed
from gcnii.nn import MODELS
from gcnii.results import bundle
from gcnii.train.recipe import RECIPE_FIELDS
from gcnii.tuning import closing, question
from gcnii_paper import ledger

FORMATS = (ROOT / "docs/reference/formats.md").read_text("utf-8")
MADE = docs_module("generated")


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
    keys = {*bundle.ENSEMBLE, "format", "seal", *bundle.MEMBER_SHAPE}
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


@pytest.mark.filterwarnings("ignore:the intervals are set by")  # by few nodes
def test_every_column_of_labels_is_named():
    graph = gcnii.load("csbm", n=120)
    numbers = replace(graph, y=graph.X[:, :1].astype(float), classes=None, targets=("views",))
    for one, name in ((graph, "CLASS"), (numbers, "NAME")):
        table = gcnii.to_table(gcnii.fit(one, "gcnii", layers=2, epochs=3), coverage=0.9)
        shown = {re.sub(r"\(.*\)", f"({name})", column) for column in table.column_names}
        assert shown <= set(re.findall(r"`([\w()]+)`", section("Labels"))), shown


def test_what_an_onnx_file_says_of_itself_is_named(tmp_path):
    onnx = pytest.importorskip("onnx")
    result = gcnii.fit(gcnii.load("csbm", n=60), "gcnii", layers=2, epochs=3)
    model = onnx.load(gcnii.export_onnx(result, tmp_path / "model.onnx"))
    assert {one.key for one in model.metadata_props} <= named(section("ONNX"))
    assert f"(opset {model.opset_import[0].version})" in section("ONNX")


def test_every_tensor_and_key_of_a_packed_graph_is_named():
    assert {*packed.PLAIN, *packed.TEXTS, *packed.DOCUMENT, "targets"} <= named(
        section("Packed graph")
    )


def test_what_train_prints_as_json_is_named(tmp_path):
    small = ("--layers", "2", "--width", "4", "--epochs", "2")
    answer = call("train", "csbm", *small, "--json", "--quiet", cwd=tmp_path)
    assert set(json.loads(answer.out)) <= named(section("Bundle").split("train --json")[1])


def test_every_public_name_has_a_page_with_members_that_exist():
    rooms = {"analysis", "data", "inference", "nn", "__version__"}
    names = [name for group in MADE.API.values() for name in group]
    assert len(names) == len(set(names))
    assert set(dir(gcnii)) - rooms <= set(names)
    for group in MADE.API.values():
        for name, members in group.items():
            assert inspect.getdoc(MADE.thing(name)), name
            assert all(hasattr(MADE.thing(name), one) for one in members.split()), name


def test_a_command_has_a_page_with_all_of_its_flags_and_where_it_is_used():
    page = MADE.command_page("gcnii predict")
    for flag in ("--coverage FLOAT", "--add PATH", "--ensemble, --no-ensemble", "BUNDLE"):
        assert f"```{{option}} {flag}\n" in page
    assert "One of `lac`, `aps`. Default: `lac`." in page
    assert "(../../howto/new-nodes.md)" in page
    assert MADE.summary_of("gcnii data check").startswith("Check a graph of your own.")
    assert "[`gcnii data pack`](data-pack.md)" in MADE.command_page("gcnii data")
    assert all(f"(commands/{name}.md)" in MADE.table_of_commands() for name in ("train", "bench"))


def test_an_empty_text_in_a_flags_help_is_no_quotation_mark():
    assert "default: type; `''`: none" in MADE.command_page("gcnii train")


def test_the_table_of_settings_says_what_is_declared():
    table = MADE.settings()
    assert "|`lr`|0.01|number > 0|Learning rate of Adam|" in table
    assert "|`focal`|0.0|number in [0, 10]|" in table
    assert "64: `gcnii`, `gcnii-star`<br>8: `gcnii-plus`" in table
    assert "`label_threshold`<br>`--label-threshold`|`half`|`half`, `validation`|" in table
    for name in RECIPE_FIELDS:
        assert table.count(f"\n|`{name}`") == 1


def test_the_list_for_language_models_has_every_page_with_a_sentence():
    text = MADE.llms()
    lines = dict(re.findall(r"^- \[[^]]+\]\(([^)]+)\.html\): (.+)$", text, re.MULTILINE))
    assert {f"docs/{page}.md" for page in lines} == {*PAGES} - {"docs/index.md"}
    assert all(re.search(r"[.:?]$", sentence) for sentence in lines.values()), lines
    assert lines["evidence/results"].startswith("The paper's own models replicate in ")
    assert "`--target COLUMN` predicts" in lines["howto/numbers"]
    assert text.startswith("# gcnii\n\n> Some customers, papers or accounts have a label.")


def test_what_a_coding_agent_is_told_is_of_tested_pages_and_leads_somewhere():
    text = MADE.skill()
    _, head, body = text.split("---\n", 2)
    about = yaml.safe_load(head)
    assert about["name"] == "gcnii"
    assert len(about["description"]) <= 1024
    titles = [title for titles in MADE.ESSENCE.values() for title in titles]
    assert re.findall(r"^## (.*)$", body, re.MULTILINE) == titles
    assert "pip install ." in body
    assert not re.search(r"^ *```\w+ ", body, re.MULTILINE)  # marks are for those who build it
    for page in re.findall(r"\]\(([^)#:]+)\.html", body):
        assert (ROOT / f"docs/{page}.md").exists(), page
    for name in re.findall(r"gcnii\.((?:[a-z]+\.)?\w+)\(", body):
        assert MADE.thing(name), name


def test_models_that_are_recommended_stand_apart_from_the_rest():
    first, rest, able = re.split("\n## (?:For comparison|What each can do)\n", MADE.models())
    assert [name for name, one in MODELS.items() if one.card.when] == re.findall(
        r"^### `(.*)`$", first, re.MULTILINE
    )
    assert [name for name, one in MODELS.items() if not one.card.when] == re.findall(
        r"^\|`(.*?)`\|", rest, re.MULTILINE
    )
    assert "\n|`gat`|–|–|–|yes|" in able  # neither weights nor types of edges
    assert "\n|`gcnii`|yes|yes|yes|–|" in able
    assert "\n|`mlp`|–|–|yes|–|" in able
