"""Our records beside the best known numbers: from results alone, by a rule that can be checked."""

import json
from dataclasses import replace
from math import sqrt
from pathlib import Path

import pytest
from scipy.stats import t, ttest_1samp
from support.made_up_cells import measured
from support.made_up_records import hold

from gcnii.errors import InputError
from gcnii.train.plan import make_plan
from gcnii.train.presets import records
from gcnii.tuning.question import GOOD
from gcnii_paper.report.grid import grid
from gcnii_paper.report.markdown import takeaway
from gcnii_paper.report.page import page
from gcnii_paper.standing import (
    RunScores,
    beyond_rows,
    findings_table,
    gain,
    read_findings,
    section,
    stands,
)
from gcnii_paper.tables.beyond import BEST, KNOWN, NAME, BestKnown, choose_best
from gcnii_paper.tables.cells import MeasuredCell
from gcnii_paper.tables.registry import CELLS, TITLES, cells_of

SCORES = [70.0, 72.0, 74.0]  # their mean is 72, their deviation 2
RECORD = {"model": "gcnii-star", "settings": {"layers": 3}, "tried": 40}


def best(mean, **more):
    return BestKnown("mars", "Mars", mean, "Nobody 2020", **more)


def on_splits(name, scores, splits, **changes):
    """A cell of the paper with these scores on these splits."""
    cell = measured(name, scores)
    runs = (replace(run, split=split) for run, split in zip(cell.runs, splits, strict=True))
    return replace(cell, runs=tuple(runs), **changes)


def of_record(graph, scores, **changes):
    """The measured cell of a record on one split."""
    (cell,) = (cell for cell in cells_of(NAME) if cell.graph == graph)
    fields = ("table", "row", "column", "graph", "model", "command", "note", "extra", "stand_in")
    about = {name: getattr(cell, name) for name in fields} | {"settings": dict(cell.settings)}
    runs = measured("table2/gcnii/cora", scores).runs
    found = {"cell": cell.id, "settings_hash": "fedcba9876543210", "printed": None, "runs": runs}
    return MeasuredCell(**about | found | changes)


def test_on_one_split_the_rule_is_a_t_test_of_our_runs():
    error = 2 / sqrt(3)
    edge = t.ppf(0.975, 2) * error  # 4.97 points
    assert stands(SCORES, [0, 0, 0], best(72 + edge - 0.01)).word == "not significantly behind"
    assert stands(SCORES, [0, 0, 0], best(72 + edge + 0.01)).word == "behind"
    assert stands(SCORES, [0, 0, 0], best(72 - edge - 0.01)).word == "ahead"
    found = stands(SCORES, [0, 0, 0], best(70))
    assert (found.difference, found.error) == (pytest.approx(2), pytest.approx(error))
    for known in (60.0, 66.9, 67.1, 72.0, 76.9, 77.1):
        significant = ttest_1samp(SCORES, known).pvalue < 0.05
        assert (stands(SCORES, [0, 0, 0], best(known)).word[:3] != "not") == significant


def test_the_error_of_a_number_counts_where_its_deviation_and_runs_are_known():
    found = stands(SCORES, [0, 0, 0], best(70, sd=3.0, runs=9))
    assert found.error == pytest.approx(sqrt(4 / 3 + 1))
    assert stands(SCORES, [0, 0, 0], best(70, sd=3.0)).error == pytest.approx(2 / sqrt(3))


def test_on_the_same_splits_their_levels_cancel_and_a_number_of_others_is_not_compared():
    scores, splits = [60.0, 62.0, 80.0, 82.0], [0, 0, 1, 1]
    # within a split the deviation is √2: our error is √2/√4, theirs, of one run per split, √2/√2
    assert stands(scores, splits, best(70)).error == pytest.approx(sqrt(0.5 + 1))
    assert stands(scores, splits, best(70, shared=False)) is None


def test_no_verdict_rests_on_one_run_or_on_a_run_that_diverged():
    assert stands([70.0], [0], best(60)) is None
    assert stands([70.0, float("nan")], [0, 0], best(60)) is None


def test_the_difference_is_paired_by_split_and_on_one_split_by_seed():
    one = on_splits("table5/gcnii/texas", [60.0, 70.0, 62.0, 72.0], [0, 1, 0, 1])
    other = on_splits("table5/gcnii/texas", [50.0, 64.0], [0, 1])
    found = gain(RunScores.of(one), RunScores.of(other))
    assert (found.mean, found.pairs) == (pytest.approx(9), 2)  # 11 and 7
    assert found.error == pytest.approx(2)
    cells = (measured("table2/gcnii/cora", scores) for scores in (SCORES, [70.0, 71]))
    seeds = gain(*map(RunScores.of, cells))
    assert (seeds.mean, seeds.pairs) == (pytest.approx(0.5), 2)


def test_the_table_is_not_among_the_papers(monkeypatch, tmp_path):
    hold(monkeypatch, tmp_path, {"cora": {"model": "mlp", "settings": {"width": 32}}})
    assert [cell.id for cell in cells_of(NAME)] == ["beyond/record/cora"]
    assert NAME not in TITLES
    assert NAME not in CELLS
    assert not [cell for cell in cells_of("all") if cell.table == NAME]
    found = [of_record("cora", SCORES)]
    assert takeaway([grid(name, found) for name in CELLS], []) == takeaway(
        [grid(name, []) for name in CELLS], []
    )
    assert "beside 0 runs of our own" in " ".join(page(found, []).split())


def test_a_number_that_was_set_aside_is_listed_with_its_reason_and_is_not_the_best():
    text = section(beyond_rows([]))
    for one in KNOWN:
        about = one.source
        assert all((one.seen, about.code, about.splits, about.features, about.labels))
        assert f"|{about.whose}|{about.splits}|{about.features}|{about.labels}|{one.seen}|" in text
        (row,) = (best for best in BEST if best.graph == one.graph)
        if about.aside:
            assert f"|{about.code}|{about.aside}|" in text
            assert not row.shared or (row.mean, row.whose) != (one.mean, about.whose)
        else:
            assert row.shared
            assert row.mean >= one.mean
    assert {best.graph for best in BEST if not best.shared} == {"amazon-photo", "coauthor-cs"}


def test_every_best_known_number_names_its_source_and_splits():
    assert len({one.graph for one in BEST}) == len(BEST) == 15
    for one in BEST:
        assert one.whose, one.graph
        assert one.protocol, one.graph
        assert one.least == (20 if one.graph in ("cora", "citeseer", "pubmed") else 30)
        assert not one.plain or one.plain in {cell.id for cell in cells_of("all")}


def test_a_name_that_is_part_of_another_is_chosen_alone():
    assert [one.graph for one in choose_best("cora")] == ["cora"]
    assert [one.graph for one in choose_best("beyond/record/chameleon")] == ["chameleon"]
    assert {one.graph for one in choose_best("full")} == {
        "cora-full",
        "citeseer-full",
        "pubmed-full",
    }
    assert choose_best() == BEST
    with pytest.raises(ValueError, match="beyond has no data set 'mars'; known: cora, citeseer,"):
        choose_best("mars")


def test_a_cell_has_the_settings_of_the_record_alone(monkeypatch, tmp_path):
    hold(monkeypatch, tmp_path, {"texas": {"model": "gcnii", "settings": {"layers": 2}}})
    (cell,) = cells_of(NAME)
    assert cell.settings == make_plan("gcnii", {"layers": 2}).settings
    assert (cell.runs, cell.extra, cell.printed) == (30, True, None)
    assert cell.note.startswith("by validation the best of 40 settings; the ten splits of Geom-GCN")


def test_a_row_has_our_number_the_best_known_one_and_the_difference_to_gcnii(monkeypatch, tmp_path):
    hold(monkeypatch, tmp_path, {"citeseer": RECORD})
    cells = [
        of_record("citeseer", [75.0, 76.0, 75.5]),
        measured("table2/gcnii/citeseer", [73, 74, 74.5]),
    ]
    lines = section(beyond_rows(cells)).splitlines()
    assert (
        "|Citeseer|75.5 ± 0.5 (3)|–|75.4 ± 0.4|GRAND, Feng et al. 2020|not significantly behind"
        "|73.8 ± 0.8 (3)|+1.7 ± 0.3 (3)|gcnii-star|40|" in lines
    )
    assert "|Film|–|–|38.69|RDGNN, Eliasof et al. 2024|missing|–|–|–|–|" in lines
    assert (
        "- Citeseer: measure it with `gcnii reproduce beyond --only beyond/record/citeseer`"
        in lines
    )


def test_runs_of_an_earlier_record_do_not_count(monkeypatch, tmp_path):
    hold(monkeypatch, tmp_path, {"citeseer": RECORD})
    cells = [of_record("citeseer", SCORES)]
    (row,) = beyond_rows(cells, choose_best("citeseer"))
    assert row.word == "not significantly behind"
    hold(monkeypatch, tmp_path, {"citeseer": RECORD | {"settings": {"layers": 9}}})
    (row,) = beyond_rows(cells, choose_best("citeseer"))
    assert (row.word, row.ours) == ("missing", None)


def test_a_run_that_diverged_fails_the_row(monkeypatch, tmp_path):
    hold(monkeypatch, tmp_path, {"citeseer": RECORD})
    (row,) = beyond_rows([of_record("citeseer", [75.0, None])], choose_best("citeseer"))
    assert (row.word, row.document()["ours"]["mean"]) == ("failed", None)


def test_the_page_has_the_section_with_its_rule(monkeypatch, tmp_path):
    hold(monkeypatch, tmp_path, {"citeseer": RECORD})
    html = page([of_record("citeseer", SCORES)], [])
    assert '<section id="beyond">' in html
    assert "<td>72.0 ± 2.0 (3)</td>" in html
    assert "by a two-sided t-test at" in html


def test_where_no_number_counts_ours_is_shown_beside_one_of_another_split(monkeypatch, tmp_path):
    hold(monkeypatch, tmp_path, {"amazon-photo": RECORD})
    (row,) = beyond_rows([of_record("amazon-photo", SCORES)], choose_best("amazon-photo"))
    assert (row.word, row.standing) == ("not compared", None)


def nested(folder, **changes):
    """A document of choices per split, of two splits of Texas."""
    splits = [
        {"split": split, "val": 0.9, "test": test, "model": "gcn", "settings": {"layers": 2}}
        for split, test in enumerate((0.8, 0.9))
    ]
    about = {"data": "texas", "command": "gcnii tune texas", "commit": None, "day": "2026-11-18"}
    scores = {"settings_tried": 64, "splits": splits, "test_mean": 0.85, "test_sd": 0.07}
    (folder / "nested").mkdir(exist_ok=True)
    (folder / "nested" / "texas.json").write_text(json.dumps(about | scores | changes))


def test_a_choice_per_split_stands_beside_the_one_choice_for_all(monkeypatch, tmp_path):
    hold(monkeypatch, tmp_path, {"texas": RECORD})
    nested(tmp_path)
    (row,) = beyond_rows([of_record("texas", SCORES)], choose_best("texas"), tmp_path)
    assert "|Texas|72.0 ± 2.0 (3)|85.0 ± 7.0 (2)|94.59" in section([row])
    assert "Texas, nested: `gcnii tune texas`, gcn, of 64 settings\n" in section([row])
    assert row.document()["nested"]["tried"] == 64
    nested(tmp_path, ensemble_mean=0.861, ensemble_sd=0.042)
    (row,) = beyond_rows([of_record("texas", SCORES)], choose_best("texas"), tmp_path)
    assert "of 64 settings; an ensemble per split has 86.1 ± 4.2\n" in section([row])
    (row,) = beyond_rows([of_record("texas", SCORES)], choose_best("texas"), tmp_path / "none")
    assert "|Texas|72.0 ± 2.0 (3)|–|94.59" in section([row])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"test_mean": 0.95}, "test_mean must be the mean of the splits, got 0.95"),
        ({"splits": []}, "splits must have test scores in"),
        ({"data": 3}, "data must be"),
    ],
)
def test_a_nested_number_that_is_not_that_of_its_splits_is_refused(change, sentence, tmp_path):
    nested(tmp_path, **change)
    with pytest.raises(InputError, match=sentence):
        beyond_rows([], choose_best("texas"), tmp_path)


def study(folder, name, val, number=30, settings=None, **changes):
    """A study of Texas as it is kept, as far as it is read here."""
    settings = make_plan("gcnii-star", {"layers": 3} | (settings or {})).settings
    document = {
        **{"graph": "texas", "tried": 4, "fixed": {}, "verdict": "The graph helps: a lot."},
        "winner": {"number": number, "model": "gcnii-star", "val": val, "settings": settings},
        "final": {"seed": [1000, 1001], "split": [0, 1], "test": [0.6, 0.8]},
        "lead": {"mlp": {"mean": 0.1, "error": 0.02}},
        "trials": [{"model": model} for model in ("mlp", "gcn", "gcnii-star", "gcnii-star")],
    }
    (folder / "studies").mkdir(exist_ok=True)
    (folder / "studies" / f"{name}.json").write_text(json.dumps(document | changes))


def test_a_record_that_was_not_measured_has_the_runs_that_ended_its_study(monkeypatch, tmp_path):
    hold(monkeypatch, tmp_path, {"texas": RECORD | {"val": 0.9}})
    study(tmp_path, "texas", 0.8, final={"seed": [0], "split": [0], "test": [0.1]})
    study(tmp_path, "texas-2", 0.9)
    (row,) = beyond_rows([], choose_best("texas"), tmp_path)
    assert (row.ours.mean, row.ours.n, row.ours.seeds) == (pytest.approx(70), 2, (1000, 1001))
    assert row.missing == "gcnii reproduce beyond --only beyond/record/texas"
    (row,) = beyond_rows([of_record("texas", SCORES)], choose_best("texas"), tmp_path)
    assert row.ours.n == 3
    hold(monkeypatch, tmp_path, {"texas": RECORD | {"val": 0.7}})  # of another study
    assert beyond_rows([], choose_best("texas"), tmp_path)[0].ours is None


def test_what_a_study_tested_that_chose_for_each_split_is_not_the_records(monkeypatch, tmp_path):
    hold(monkeypatch, tmp_path, {"texas": RECORD | {"val": 0.9}})
    study(tmp_path, "texas", 0.9, nested=True)
    assert beyond_rows([], choose_best("texas"), tmp_path)[0].ours is None


def test_options_fixed_by_hand_and_the_trials_of_baselines_are_told(tmp_path):
    study(tmp_path, "texas", 0.8)
    study(tmp_path, "texas-2", 0.9, fixed={"layers": 3, "loops": "none"})
    line = (
        "|Texas|trial 30 of texas-2|layers, loops|90.0|8|1 and 1 of 4|+10.0 ± 2.0: the graph helps|"
    )
    assert line in findings_table(read_findings(tmp_path / "studies")).splitlines()


def test_an_open_question_is_said_to_be_open(tmp_path):
    study(tmp_path, "texas", 0.8, verdict="It is open whether the graph helps: 1.4 ± 1.4 points.")
    text = " ".join(findings_table(read_findings(tmp_path / "studies")).split())
    assert "It is open whether the graph helps at all on Texas." in text
    assert "+10.0 ± 2.0: it is open whether the graph helps|" in text


def test_a_default_and_a_typed_point_are_called_first_points(tmp_path):
    def found(**changes):
        study(tmp_path, "texas", 0.8, **changes)
        return read_findings(tmp_path / "studies")["texas"].typed

    (model, point), *_ = GOOD
    typed = {"number": 30, "model": model, "val": 0.8, "settings": point | {"scale": "length"}}
    assert not found()
    assert found(number=2)
    assert found(winner=typed)
    changed = typed | {"settings": typed["settings"] | {"lr": 0.123}}
    assert not found(winner=changed)
    assert found(winner=changed, fixed={"lr": 0.123})


def test_every_record_that_is_shipped_is_the_best_by_validation_of_all_kept_studies():
    folder = Path(__file__).parents[3] / "results" / "beyond" / "studies"
    findings, held = read_findings(folder), records()
    assert findings.keys() == held.keys() == {best.graph for best in BEST}
    for name, record in held.items():
        won = findings[name].study["winner"]
        assert (record.model, record.val) == (won["model"], won["val"]), name
        assert record.settings.items() <= won["settings"].items(), name
    typed = {name for name, finding in findings.items() if finding.typed}
    assert typed == {"cora", "citeseer", "pubmed", "amazon-photo"}
