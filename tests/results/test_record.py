"""run.json is read as a stranger's file: whatever it holds, it is a bundle's record or refused."""

import contextlib
import json
import time

import pandas as pd
import pytest
from support.command_line import write_pets

import gcnii
from gcnii.errors import BundleError, InputError
from gcnii.results.bundle import open_bundle

SMALL = {"layers": 2, "width": 4, "epochs": 2, "device": "cpu"}
ANYTHING = (None, True, -1, 1e308, 10**400, "x", [], {"x": [None]})


@pytest.fixture(scope="module")
def graph():
    """A graph of tables, whose bundle has every part that a bundle can have."""
    kinds = ["cat", "dog"] * 8
    roles = ["train", "train", "train", "train", "val", "val", "test", "test"] * 2
    colours = ["red", "red", "blue", "blue"] * 4
    ids = [f"n{i}" for i in range(16)]
    size = [0.3 * i for i in range(16)]
    table = {"id": ids, "size": size, "colour": colours, "label": kinds, "split": roles}
    edges = pd.DataFrame({"source": ids, "target": ids[1:] + ids[:1], "weight": [0.5] * 16})
    return gcnii.from_frames(pd.DataFrame(table), edges, categorical=["colour"])


@pytest.fixture(scope="module")
def saved(graph, tmp_path_factory):
    """The bundle of two runs, and its record."""
    folder = tmp_path_factory.mktemp("record") / "bundle"
    gcnii.fit(graph, seeds=range(2), **SMALL).save(folder)
    text = (folder / "run.json").read_text()
    yield folder, json.loads(text)
    (folder / "run.json").write_text(text)


def refusal(saved, change):
    """What is said of a record without a seal, as older versions wrote it, that is changed so."""
    folder, record = saved
    changed = json.loads(json.dumps(record))
    del changed["seal"]
    change(changed)
    (folder / "run.json").write_text(json.dumps(changed))
    with pytest.raises(BundleError) as raised:
        open_bundle(folder)
    head, tail = f"{folder / 'run.json'} is not a bundle's record: ", "; restore it, or train into"
    sentence = str(raised.value)
    assert sentence.startswith(head)
    return sentence.removeprefix(head).split(tail)[0]


def test_settings_belong_to_the_weights_that_they_were_trained_with(saved):
    folder, record = saved
    settings = record["settings"] | {"alpha": 0.3}
    (folder / "run.json").write_text(json.dumps(record | {"settings": settings}))
    with pytest.raises(BundleError, match="was changed after the training"):
        open_bundle(folder)


def test_a_record_may_be_written_anew_in_another_order_and_width(saved, graph):
    folder, record = saved
    text = json.dumps(dict(reversed(record.items())), indent=7, ensure_ascii=True)
    (folder / "run.json").write_text(text)
    assert len(open_bundle(folder).predict(graph)) == 16


def test_a_record_without_a_seal_is_an_older_one(saved, graph):
    folder, record = saved
    older = {name: value for name, value in record.items() if name not in ("seal", "curves_sha256")}
    (folder / "run.json").write_text(json.dumps(older))
    assert len(open_bundle(folder).predict(graph)) == 16


def test_a_graph_that_was_loaded_with_columns_and_sets_of_names_is_loaded_so_again(tmp_path):
    write_pets(tmp_path / "pets")
    columns = gcnii.load(tmp_path / "pets").columns
    for given in ({"columns": columns}, {"categorical": {"x0"}}):
        graph = gcnii.load(tmp_path / "pets", **given)
        opened = open_bundle(gcnii.fit(graph, **SMALL).save(tmp_path / "-".join(given)))
        again = gcnii.load(tmp_path / "pets", **opened.origin.loaded_with)
        assert again.fingerprint == graph.fingerprint


@pytest.mark.parametrize("text", ["[" * 100_000, '{"format": 1, "graph": ' + '{"a":' * 100_000])
def test_deep_nesting_is_refused(saved, text):
    folder, _ = saved
    (folder / "run.json").write_text(text)
    with pytest.raises(BundleError, match="is not a bundle's record: "):
        open_bundle(folder)


@pytest.mark.parametrize("found", [0, -1, 3, True, 1.0, "1", None])
def test_another_format_is_refused(saved, found):
    folder, record = saved
    (folder / "run.json").write_text(json.dumps(record | {"format": found}))
    with pytest.raises(BundleError, match=f"has bundle format {found}, this gcnii reads up to 2;"):
        open_bundle(folder)


def another_run(record):
    record["runs"].append(record["runs"][0] | {"seed": 9})


def one_run_fewer(record):
    record["runs"].pop()


def no_runs(record):
    record["runs"] = []


def a_run_twice(record):
    record["runs"][1] = record["runs"][0]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (another_run, "the weights do not fit its settings and runs"),
        (one_run_fewer, "the weights do not fit its settings and runs"),
        (no_runs, "runs must be one or more, of different seeds, got 0"),
        (a_run_twice, "runs must be one or more, of different seeds, got 2"),
    ],
)
def test_there_are_as_many_runs_as_weights(saved, change, sentence):
    assert refusal(saved, change) == sentence


@pytest.mark.parametrize("layers", [1, 3, 5, 100_000])
def test_layers_that_the_weights_have_not_are_refused_at_once(saved, layers):
    start = time.process_time()  # of this process alone, however busy the machine is
    sentence = refusal(saved, lambda record: record["settings"].update(layers=layers))
    assert sentence == "the weights do not fit its settings and runs"
    assert time.process_time() - start < 20  # a network of a billion layers takes hours


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("layers", 10**9, "layers must be an integer in [1, 100000], got 1000000000"),
        ("width", 8, "the weights do not fit its settings and runs"),
        ("width", 10**12, "width must be an integer ≤ 2,147,483,647, got 1000000000000"),
        ("precision", "float64", "the weights do not fit its settings and runs"),
        ("alpha", 2, "alpha must be a number in [0, 1], got 2"),
        ("layers", 0, "layers must be an integer in [1, 100000], got 0"),
        ("scale", "rows", "scaling.kind must be rows, as in the settings, got standard"),
    ],
)
def test_settings_must_be_possible_and_fit_the_weights(saved, name, value, sentence):
    assert refusal(saved, lambda record: record["settings"].update({name: value})) == sentence


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("classes", ["cat", "cat"], "graph.classes must be 2 different names, got 2"),
        ("classes", ["cat", "cat", "dog"], "graph.classes must be 2 different names, got 3"),
        ("k", 3, "graph.classes must be 3 different names, got 2"),
        ("features", ["size"], "graph.features must be 3 different names, got 1"),
        ("features", ["size"] * 3, "graph.features must be 3 different names, got 3"),
        ("d", 4, "graph.features must be 4 different names, got 3"),
        ("d", 0, "graph.d must be at least 1, got 0"),
        ("columns", [], "graph.columns make 0 features, but d is 3"),
        ("fingerprint", "0", "fingerprint and graph.fingerprint differ"),
        ("loaded_with", {"n": {}}, "graph.loaded_with.n must be true or false or a number or"),
        ("colour", 1, "graph.colour is unknown"),
    ],
)
def test_what_is_said_of_the_graph_must_agree(saved, name, value, sentence):
    changed = refusal(saved, lambda record: record["graph"].update({name: value}))
    assert changed.startswith(sentence)


def places(value, path=()):
    """The places in a document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, one in inner:
        if key == 1:
            return  # one item of a list is as good as another
        yield (*path, key)
        if isinstance(one, dict | list):
            yield from places(one, (*path, key))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_anything_anywhere_is_refused_in_a_sentence_or_does_no_harm(saved, graph):
    folder, record = saved
    del record["seal"]
    for path in places(record):
        for value in ANYTHING:
            changed = json.loads(json.dumps(record))
            inner = changed
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = value
            (folder / "run.json").write_text(json.dumps(changed))
            with contextlib.suppress(InputError):  # anything else is a bug
                opened = open_bundle(folder)
                assert repr(opened)
                assert opened.predict_proba(graph, "cpu").shape == (16, 2)
