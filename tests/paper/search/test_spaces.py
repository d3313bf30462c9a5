"""What is searched."""

from itertools import chain

import pytest

from gcnii.train.plan import make_plan
from gcnii_paper.search import SEARCHES, choose_searches
from gcnii_paper.tables.printed import TABLE_3
from gcnii_paper.tables.registry import ADOPTED, _searched, cells_of


@pytest.mark.parametrize("search", SEARCHES.values(), ids=lambda search: search.name)
def test_every_space_holds_settings_of_its_model(search):
    for point in chain([{}], *search.axes):
        make_plan(search.model, search.fixed | point)


def test_what_was_published_is_not_searched():
    names = [search.name for search in choose_searches("table3/cora")]
    assert "table3/cora-jknet-drop/8" in names
    assert not {
        "table3/cora-jknet-drop/4",
        "table3/cora-gcn-drop/2",
        "table3/cora-incep-drop/64",
    } & set(names)
    with pytest.raises(
        ValueError, match="no search has 'table2' in its name; names are like table3"
    ):
        choose_searches("table2")


def test_gcnii_with_settings_of_each_depth_stands_below_table_3_where_they_were_searched_for():
    below = {cell.id for cell in cells_of("table3") if cell.row.endswith(", searched")}
    names = {search.name for search in choose_searches("-searched/")}
    assert len(names) == 30  # five depths beside Table 2's, three graphs, two models
    assert below == names & set(ADOPTED)
    one = _searched("cora", "GCNII*", 4)
    assert (one.id, one.model, one.extra) == (
        "table3/cora-gcnii-star-searched/4",
        "gcnii-star",
        True,
    )
    assert one.printed == TABLE_3["cora"]["gcnii-star"][4]
