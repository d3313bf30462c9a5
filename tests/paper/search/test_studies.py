"""The winners of studies become records; a study that cannot be one changes nothing."""

import json

import pytest
from support.made_up_records import hold

import gcnii
from gcnii.errors import InputError
from gcnii.train.plan import make_plan
from gcnii.train.presets import Record, records
from gcnii_paper import search
from gcnii_paper.search import adopt_studies, own_words

VAL = [0.7, 0.8, 0.75, 0.8, 0.7]
CHANGED = {"layers": 4, "alpha": 0.3}


@pytest.fixture(scope="module")
def study():
    """A study of csbm as `gcnii tune` writes it, as far as it is read."""
    settings = make_plan("gcnii", CHANGED).settings
    winner = {"number": 1, "model": "gcnii", "val": sum(VAL) / 5, "settings": settings}
    tried = {"model": "gcnii", "settings": {"alpha": 0.3, "layers": 4}}
    trials = [
        {"number": 1, "outcome": "complete", "val": VAL, **tried},
        {"number": 0, "outcome": "given up", "val": [0.1], **tried},
    ]
    return {
        **{"graph": "csbm", "fingerprint": gcnii.load("csbm").fingerprint, "measured": "accuracy"},
        **{"tried": 2, "command": "gcnii tune csbm --out /home/me/x --budget 3m"},
        **{"winner": winner, "trials": trials, "verdict": "The graph helps."},
        "searched": {"gcnii": ["alpha"]},
    }


@pytest.fixture
def adopt(tmp_path, monkeypatch):
    """Adopt these documents; the file of records has one of texas before."""
    file = hold(monkeypatch, tmp_path, {"texas": {"model": "gcn", "settings": {}}})

    def adopted(*documents):
        paths = []
        for number, document in enumerate(documents):
            paths.append(tmp_path / f"{number}.json")
            paths[-1].write_text(json.dumps(document))
        return adopt_studies(paths, file, tmp_path / "studies")

    return adopted


def test_a_winner_is_a_record_with_the_settings_that_differ_from_the_defaults(
    study, adopt, tmp_path
):
    adopt(study)
    assert records()["csbm"] == Record("gcnii", CHANGED, 2, pytest.approx(0.75))
    assert records()["texas"].model == "gcn"
    kept = json.loads((tmp_path / "studies" / "csbm.json").read_text())
    trials = [one | {"settings": {"alpha": 0.3}} for one in study["trials"]]  # what was searched
    assert kept == study | {"command": "gcnii tune csbm --budget 3m", "trials": trials}


def test_studies_of_one_data_set_count_together_and_the_best_wins(study, adopt, tmp_path):
    better = study["winner"] | {"model": "gcn", "settings": {"layers": 3}, "val": 0.9}
    trials = [study["trials"][0] | {"val": [0.9] * 5}]
    adopt(study, study | {"winner": better, "trials": trials, "tried": 1})
    assert records()["csbm"] == Record("gcn", {"layers": 3}, 3, 0.9)
    assert {path.name for path in (tmp_path / "studies").iterdir()} == {"csbm.json", "csbm-2.json"}


def of_winner(study, val, **settings):
    """A study whose only trial has this score and these settings."""
    winner = study["winner"] | {"val": val, "settings": study["winner"]["settings"] | settings}
    trials = [study["trials"][0] | {"val": [val] * 5}]
    return study | {"winner": winner, "trials": trials, "tried": 1}


def test_the_highest_validation_score_wins_whatever_the_stopping_rule(study, adopt):
    by_loss = of_winner(study, 0.8, monitor="val_loss")
    by_score = of_winner(study, 0.81, monitor="val_score_loss")
    for studies in ((by_loss, by_score), (by_score, by_loss)):
        assert adopt(*studies)["csbm"].settings["monitor"] == "val_score_loss"


def test_settings_of_an_earlier_trial_of_our_own_count_as_tried(study, adopt, monkeypatch):
    monkeypatch.setitem(search.EARLIER, "csbm", 12)
    assert adopt(study)["csbm"].tried == 2 + 12


def test_a_best_study_that_cannot_be_trained_any_more_is_not_passed_over(study, adopt):
    gone = of_winner(study, 0.9, row_norm="length")
    with pytest.raises(InputError, match="the best of these studies of csbm has an option that"):
        adopt(study, gone)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"graph": "mars"}, "'mars' is not a data set of the catalog"),
        ({"fingerprint": "0"}, "it is of another graph than csbm"),
        ({"measured": "auc"}, "it must maximise accuracy, got auc"),
        ({"tried": 9}, "its winner must be a complete one of its trials, and all must be there"),
        ({"tried": "two"}, "tried must be a whole number, got 'two'"),
        ({"trials": []}, "its winner must be a complete one of its trials"),
        ({"winner": {"val": 0.9}}, "the winner's val must be the mean of its runs, got 0.9"),
        ({"winner": {"model": "gcnli"}}, "no model 'gcnli'; did you mean"),
        ({"winner": {"settings": {"depth": 3}}}, "gcnii has no setting 'depth'"),
        ({"winner": {"settings": {"layers": -1}}}, "layers must be"),
    ],
)
def test_a_broken_study_is_refused_and_changes_nothing(change, sentence, study, adopt, tmp_path):
    broken = study | change
    if "winner" in change:
        broken["winner"] = study["winner"] | change["winner"]
    before = (tmp_path / "record.json").read_bytes()
    with pytest.raises(InputError, match=sentence):
        adopt(study, broken)
    assert (tmp_path / "record.json").read_bytes() == before
    assert not (tmp_path / "studies").exists()


def test_a_choice_by_few_runs_is_refused(study, adopt):
    few = [study["trials"][0] | {"val": [0.75, 0.75, 0.75]}]
    with pytest.raises(InputError, match="must be of at least 5 runs, got 3"):
        adopt(study | {"trials": few, "tried": 1})


def test_a_command_is_kept_without_folders_and_databases():
    words = "gcnii tune /data/texas --storage=postgresql://me@db --jobs 2 --out '/a b' --lr 0.1"
    assert own_words(words, "texas") == "gcnii tune texas --jobs 2 --lr 0.1"
