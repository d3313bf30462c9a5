"""`--settings`: the winner of a study, or the settings of a bundle; anything else is a sentence."""

import json

import pytest

import gcnii
from gcnii.errors import BundleError, InputError
from gcnii.tuning.question import STUDY, winner_in


@pytest.fixture(scope="module")
def folder(tuned, tmp_path_factory):
    """The folder of a study."""
    folder = tmp_path_factory.mktemp("study")
    tuned.save(folder)
    return folder


def test_the_winner_of_a_study_is_its_model_with_all_settings(folder, tuned):
    assert winner_in(folder) == (tuned.model, tuned.settings)


def test_the_settings_of_a_bundle_are_taken_as_well(folder, tuned, tmp_path):
    tuned.result.save(tmp_path / "bundle")
    assert winner_in(tmp_path / "bundle") == (tuned.model, tuned.settings)


def test_the_bundle_of_a_study_opens_and_predicts(folder, tuned):
    bundle = gcnii.open_bundle(folder)
    assert bundle.plan.settings == tuned.settings
    assert len(bundle.predict(tuned.question.graph)) == tuned.question.graph.n


def test_a_folder_without_either_is_refused(tmp_path):
    with pytest.raises(InputError) as refused:
        winner_in(tmp_path / "x")
    assert str(refused.value) == (
        f"{tmp_path / 'x'} holds neither study.json nor a bundle; give the folder that "
        "`gcnii tune` wrote"
    )


def test_a_changed_bundle_is_refused_as_ever(tuned, tmp_path):
    tuned.result.save(tmp_path / "bundle")
    record = tmp_path / "bundle" / "run.json"
    record.write_text(record.read_text().replace('"seed"', '"sead"'))
    with pytest.raises(BundleError, match="it was changed after the training"):
        winner_in(tmp_path / "bundle")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "Expecting value: line 1 column 1 (char 0)"),
        ("[]", "it must be an object, got []"),
        ("{}", "winner is missing"),
        ('{"winner": null}', "winner must be an object, got None"),
        ('{"winner": {"model": 3, "settings": {}}}', "winner.model must be text, got 3"),
        ('{"winner": {"model": "gcn"}}', "winner.settings is missing"),
        ('{"winner": {"model": "gcn", "settings": []}}', "winner.settings must be an object, got"),
        ("[" * 100_000, "maximum recursion depth exceeded"),
        ('{"winner": ' + "[" * 60 + "]" * 60 + "}", "it is nested more than 50 levels deep"),
    ],
)
def test_a_document_that_is_no_study_is_refused_in_a_sentence(content, why, tmp_path):
    (tmp_path / STUDY).write_text(content)
    with pytest.raises(InputError) as refused:
        winner_in(tmp_path)
    assert str(refused.value).startswith(f"{tmp_path / STUDY} is not a study: {why}")
    assert str(refused.value).endswith("; restore it, or move it away")


def test_a_document_that_is_not_utf_8_is_refused(tmp_path):
    (tmp_path / STUDY).write_bytes(b"\xff\xfe{}")
    with pytest.raises(InputError, match=r"study\.json is not a study: 'utf-8' codec can't decode"):
        winner_in(tmp_path)


def test_keys_that_are_not_needed_may_be_anything(folder, tmp_path):
    document = json.loads((folder / STUDY).read_text())
    (tmp_path / STUDY).write_text(json.dumps(document | {"trials": 7, "extra": {"a": [1]}}))
    assert winner_in(tmp_path) == winner_in(folder)
