"""Every number of the paper has a cell, and every cell can be trained."""

import pytest

from gcnii.cli.models import _tables
from gcnii.data.splits import with_stratified_splits
from gcnii.nn import MODELS
from gcnii.train.plan import make_plan
from gcnii_paper.tables import registry
from gcnii_paper.tables.cells import slug
from gcnii_paper.tables.printed import (
    DEPTHS,
    PUBLIC,
    TABLE_2,
    TABLE_3,
    TABLE_4,
    TABLE_5,
    TEN_SPLITS,
)
from gcnii_paper.tables.registry import ADOPTED, CELLS, TITLES, cells_of, choose

ALL = [cell for cells in CELLS.values() for cell in cells]


def rows(table):
    return {cell.row for cell in CELLS[table] if not cell.extra}


def columns(table):
    return {cell.column for cell in CELLS[table] if not cell.extra}


def tables_of(model):
    """Where a model stands in the paper; rows of ours apart."""
    return tuple(
        title.partition(":")[0]
        for table, title in TITLES.items()
        if any(cell.model == model and not cell.extra for cell in CELLS[table])
    )


def test_gcnii_models_says_where_the_paper_reports_each_model():
    assert {name: tuple(_tables(name)) for name in MODELS} == {
        name: tables_of(name) for name in MODELS
    }


def test_no_two_cells_have_the_same_name_and_none_is_part_of_another():
    names = [cell.id for cell in ALL]
    assert len(set(names)) == len(names)
    assert not [(a, b) for a in names for b in names if a != b and a in b]


def test_the_tables_have_the_paper_s_rows_and_columns():
    family = {"GCN", "GCN(Drop)", "JKNet", "JKNet(Drop)", "Incep", "Incep(Drop)", "GCNII", "GCNII*"}
    assert rows("table2") == (family | {"GAT", "APPNP"}) - {"GCN(Drop)", "Incep"}
    assert rows("table3") == {f"{name.capitalize()} {row}" for name in PUBLIC for row in family}
    assert columns("table3") == {str(layers) for layers in DEPTHS}
    assert len(rows("table4")) == len(TABLE_4) == 9
    assert len(rows("table5")) == 11
    assert columns("table5") == {name.removesuffix("-full").capitalize() for name in TEN_SPLITS}


@pytest.mark.parametrize(
    ("table", "numbers"),
    [
        ("table2", [n for row in TABLE_2.values() for n in row.values()]),
        ("table3", [n for rows in TABLE_3.values() for row in rows.values() for n in row.values()]),
        ("table4", list(TABLE_4.values())),
        ("table5", [n for row in TABLE_5.values() for n in row.values()]),
    ],
)
def test_every_printed_number_stands_in_one_cell(table, numbers):
    printed = [cell.printed for cell in CELLS[table] if not cell.extra and cell.printed]
    assert sorted(printed, key=repr) == sorted(numbers, key=repr)


def test_the_cells_that_did_not_fit_into_the_paper_s_memory_are_ordinary_cells():
    silent = {cell.id for cell in CELLS["table3"] if cell.printed is None}
    assert silent == {
        f"table3/pubmed-incep{drop}/{layers}" for drop in ("", "-drop") for layers in (32, 64)
    }


@pytest.mark.parametrize("cell", ALL, ids=lambda cell: cell.id)
def test_settings_of_every_cell_are_known(cell):
    make_plan(cell.model, cell.settings)


def test_names_are_plain():
    assert slug("GCNII*, 64 layers") == "gcnii-star-64-layers"
    assert slug("Incep(Drop)") == "incep-drop"


def test_cells_are_chosen_by_a_word_in_their_name():
    assert {cell.column for cell in choose("table2", "CORA")} == {"Cora"}
    assert [cell.id for cell in choose("all", "table2/gcnii/cora")] == ["table2/gcnii/cora"]
    with pytest.raises(
        ValueError,
        match="no cell of table2 has 'texas' in its name; names are like table2/gcn/cora",
    ):
        choose("table2", "texas")
    with pytest.raises(ValueError, match="the paper has no 'tabel2'; did you mean 'table2'"):
        choose("tabel2")


def test_without_ppi_table_4_is_a_stand_in(monkeypatch):
    monkeypatch.setattr(registry, "has_ppi", lambda: False)
    cells = cells_of("table4")
    assert {cell.graph for cell in cells} == {"ppi-like"}
    assert all(cell.stand_in and cell.settings["epochs"] <= 20 for cell in cells)
    monkeypatch.setattr(registry, "has_ppi", lambda: True)
    assert all(
        cell.graph == "ppi" and not cell.stand_in and not cell.settings
        for cell in cells_of("table4")
    )


def test_every_table_has_a_title():
    assert list(TITLES) == list(CELLS)


@pytest.mark.parametrize(
    ("model", "tables"),
    [
        ("gcnii", ("Table 2", "Table 3", "Table 5", "Figure 2")),
        ("gcn", ("Table 2", "Table 5")),  # Table 3's GCN is DropEdge's; Kipf's is a row of ours
        ("gcnii-star-printed", ()),
        ("graphsage-lstm", ("Table 4",)),
        ("gcn-residual", ("Figure 1",)),
        ("mlp", ()),
    ],
)
def test_a_model_stands_where_the_paper_has_it_and_not_where_only_we_do(model, tables):
    assert tables_of(model) == tables


def test_true_shares_are_60_20_20_of_each_class(real_data):
    graph = with_stratified_splits(real_data("texas"))
    assert len(graph.splits) == 10
    for split in graph.splits:
        assert (split.train | split.val | split.test).all()
        for label in range(graph.k):
            members = graph.labels == label
            shares = [int((members & mask).sum()) for mask in (split.train, split.val, split.test)]
            assert shares[0] >= 0.6 * members.sum() > shares[0] - 1
            assert abs(shares[1] - 0.2 * members.sum()) < 1
    assert (graph.splits[0].train != graph.splits[1].train).any()
    assert (with_stratified_splits(graph).splits[3].test == graph.splits[3].test).all()


def test_a_number_that_the_paper_prints_for_gcnii_too_is_told():
    told = [cell.id for cell in CELLS["table3"] if "the same as GCNII's" in cell.note]
    assert told == ["table3/citeseer-gcnii-star/8", "table3/pubmed-gcnii-star/32"]


def test_a_cell_of_a_figure_tells_whether_its_settings_were_searched_for():
    for cell in (*CELLS["figure1"], *CELLS["figure2"]):
        if cell.model != "gcnii":
            assert ("not searched" in cell.note) == (cell.id not in ADOPTED), cell.id
