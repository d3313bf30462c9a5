"""The default in force is what the study chooses, and the study's numbers can be computed again."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gcnii.data import load
from gcnii.train.own import ASSUMED, DEFAULTS, LOW, MEASURED_BASELINES, Traits, homophily_of
from gcnii_paper.defaults import (
    GCNII,
    GRAPHS,
    DefaultsStudy,
    Records,
    batches,
    candidates,
    choose,
    criterion,
)
from gcnii_paper.report.defaults_page import as_document, defaults_page

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "results" / "defaults"
NAMES = [tuple(candidates(kind)[0]) for kind in range(5)]


@pytest.fixture(scope="module")
def study():
    return DefaultsStudy.of(Records(FOLDER))


@pytest.fixture(scope="module")
def raw():
    """graph → (kind, {candidate: (val, test)}, {baseline: (val, test)}), read without our code."""
    found = {}
    for path in FOLDER.glob("*.json"):
        document = json.loads(path.read_text("utf-8"))
        ours, others = {}, {}
        kind = kind_in(document)
        model = "gcnii" if kind < 3 else "gcnii-plus"
        for run in document["runs"]:
            scores = tuple(np.array(run[part]) * 100 for part in ("val", "test"))
            if run["model"] == model:
                ours[tuple(run["settings"].get(name) for name in NAMES[kind])] = scores
            elif run["model"] in MEASURED_BASELINES:
                others[run["model"]] = scores
        found[path.stem] = kind, ours, others
    return found


def kind_in(document):
    rho, homophily = document["train"] / document["d"], document["homophily"]
    links, features = (document.get(name, 0) for name in ("links", "features"))
    if homophily < 0.2 and max(links, features) >= 0.45:
        return 3 if links > features else 4
    if rho < 1:
        return 1 if homophily < 0 else 0
    return 1 if rho < 30 else 2


def best_of(raw, graphs):
    """The candidate with the highest mean gap to the best baseline, in validation."""

    def gap(key, name):
        _, ours, others = raw[name]
        return ours[key][0].mean() - max(val.mean() for val, _ in others.values())

    common = set.intersection(*(set(raw[name][1]) for name in graphs))
    return max(common, key=lambda key: np.mean([gap(key, name) for name in graphs]))


def others_of(raw, name):
    """Graphs of the same kind that are not made of the same data."""
    return [
        other
        for other in GRAPHS
        if raw[other][0] == raw[name][0] and other.split("-")[0] != name.split("-")[0]
    ]


def test_the_default_in_force_is_the_one_chosen(study):
    assert study.chosen == tuple(default.settings for default in DEFAULTS)


@pytest.mark.parametrize("name", GRAPHS)
def test_each_row_is_what_the_records_give_without_that_graph(name, study, raw):
    (row,) = (row for row in study.rows if row.graph == name)
    key = best_of(raw, others_of(raw, name))
    kind, ours, others = raw[name]
    assert tuple(row.left_out[one] for one in NAMES[kind]) == key
    best = max(others, key=lambda model: others[model][1].mean())
    difference = ours[key][1] - others[best][1]
    assert row.best == best
    error = difference.std(ddof=1) / len(difference) ** 0.5
    assert row.lead(row.default) == pytest.approx((difference.mean(), error))
    shipped = tuple(DEFAULTS[kind].settings[one] for one in NAMES[kind])
    assert row.lead(row.shipped)[0] == pytest.approx((ours[shipped][1] - others[best][1]).mean())


def test_left_out_all_graphs_but_minesweeper_are_within_a_point_of_their_best_baseline(study):
    leads = {row.graph: row.lead(row.default)[0] for row in study.counted}
    assert leads.keys() == set(GRAPHS)
    assert [name for name, lead in leads.items() if lead < -1] == ["minesweeper"]
    assert leads["minesweeper"] > -2.6


def test_the_default_in_force_is_within_a_point_of_the_best_baseline_everywhere(study):
    assert all(row.lead(row.shipped)[0] > -1 for row in study.counted)


def test_left_out_the_mean_is_four_points_above_the_best_single_baseline(study, raw):
    assert study.mean - max(study.baselines.values()) >= 4
    for name in MEASURED_BASELINES:
        ours = np.mean([raw[graph][2][name][1].mean() for graph in GRAPHS])
        assert study.baselines[name] == pytest.approx(ours)


def test_where_links_or_features_tell_the_default_leads_by_two_points_and_more(study):
    leads = {row.graph: row.lead(row.default)[0] for row in study.rows}
    for name in ("texas", "cornell", "wisconsin"):
        assert leads[name] > 2
    assert leads["chameleon"] > 4
    assert leads["squirrel"] > 17


def test_every_graph_has_all_candidates_and_nothing_is_missing():
    assert batches(Records(FOLDER), "") == []


def test_a_candidate_that_one_graph_lacks_or_that_diverged_is_not_chosen():
    def document(*runs):
        return {
            "runs": [
                *({"model": name, "settings": {}, "val": [0.5]} for name in MEASURED_BASELINES),
                *({"model": "gcnii", "settings": GCNII[i], "val": val} for i, val in runs),
            ]
        }

    one, other = document((0, [0.9]), (1, [0.6]), (2, [])), document((1, [0.6]), (2, [0.9]))
    assert choose(0, [one]) == GCNII[0]
    assert choose(0, [one, other]) == GCNII[1]
    assert criterion(GCNII[1], 0, [one, other]) == pytest.approx(0.1)
    assert criterion(GCNII[2], 0, [one, other]) == -np.inf
    assert choose(0, []) is None


def test_the_page_names_the_graph_that_misses_the_bar_and_how_the_bounds_were_set(study):
    page = " ".join(defaults_page(study).split())
    assert "19 of 20 graphs are within one point" in page
    assert "The exception: minesweeper (-2.5 left out, +0.5 with the default in force)" in page
    assert "were set after looking at validation scores of these graphs" in page
    assert "were made after looking at these graphs, test scores among them" in page
    assert "|1 ≤ ρ < 30; or ρ < 1, homophily < 0|gcnii|8|64|0.5|" in page
    assert "|homophily < 0.2, links tell|gcnii-plus|2|128|" in page
    assert "|product_first, loops none, row_norm layer, input_dropout 0.3|" in page


@pytest.mark.parametrize(
    "name", ["texas", "cornell", "wisconsin", "chameleon", "squirrel", "film", "cora"]
)
def test_the_records_hold_the_traits_of_the_graphs(name, real_data):
    real_data(name)
    assert Records(FOLDER).traits(name) == Traits.of(load(name))


def test_cornell_s_homophily_is_below_0_in_eight_of_its_splits(real_data):
    real_data("cornell")
    graph = load("cornell")
    found = [homophily_of(replace(graph, splits=(split,))) for split in graph.splits]
    assert sum(one < LOW for one in found) == 8
    assert len(found) == 10


def test_a_document_without_homophily_is_read(tmp_path):
    new = Records(FOLDER).documents["texas"]
    old = {key: value for key, value in new.items() if key != "homophily"}
    (tmp_path / "texas.json").write_text(json.dumps(old), "utf-8")
    assert Records(tmp_path).traits("texas").homophily == ASSUMED


def test_a_study_that_is_not_complete_makes_no_page(tmp_path):
    with pytest.raises(ValueError, match="`gcnii reproduce defaults` measures what is missing"):
        defaults_page(DefaultsStudy.of(Records(tmp_path)))


def test_the_document_is_json_and_holds_the_rows_asked_for(study):
    document = json.loads(json.dumps(as_document(study, "cora"), allow_nan=False))
    assert {row["graph"] for row in document["graphs"]} == {"cora", "cora-full", "cora-ml"}
    assert document["chosen"]["ρ ≥ 30"]["layers"] == 4
