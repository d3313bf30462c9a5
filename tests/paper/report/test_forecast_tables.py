"""The tables of the test of the recommended depth."""

from gcnii.paper.report.forecast_tables import forecast_tables, spread


def record(name, *, chose=False, asked=("short", "full", "sweep")):
    """Two seeds; 8 layers are best, and a network of 64 layers advises 8 or 64."""
    answers = ({"recommended": depth, "foretold": [0.7, 0.7, 0.7]} for depth in (8, 64))
    curves = ([0.5, 0.8, 0.7], [0.5, 0.8, 0.6])
    seeds = [
        {"test": curve, "val": curve[::-1], "asked": dict.fromkeys(asked, answer)}
        for curve, answer in zip(curves, answers, strict=True)
    ]
    return {"case": name, "chose": chose, "depths": [2, 8, 64], "seeds": seeds}


def rows(*records):
    """Of the first table, by graph."""
    lines = forecast_tables(records).split("\n\n")[0].splitlines()
    return {line.split("|")[1]: line.split("|")[2:-1] for line in lines}


def test_a_graph_has_the_cost_of_each_recommendation_with_its_error_and_depths():
    two, sixteen, always, chosen, *advised = rows(record("texas"))["texas"]
    assert (two, sixteen, always) == ("30.0 ± 0.0", "5.0 ± 1.7", "15.0 ± 5.0")
    assert chosen == "0.0 ± 0.0 (8, 8)"  # on validation too 8 layers are best
    assert advised == ["10.0 ± 10.0 (8, 64)"] * 3


def test_graphs_that_chose_the_rule_are_marked_and_not_in_the_mean():
    found = rows(record("cora", chose=True), record("texas"), record("digits"))
    assert "cora *" in found
    assert found["**mean of 2 held out**"][2:5] == ["15.0 ± 0.0", "0.0 ± 0.0", "10.0 ± 0.0"]
    assert found["**… less that of 64 layers, 60 epochs**"][2:5] == [
        "5.0 ± 0.0",
        "-10.0 ± 0.0",
        "0.0 ± 0.0",
    ]


def test_a_network_that_was_not_asked_has_a_dash():
    assert rows(record("citeseer", chose=True, asked=("short", "sweep")))["citeseer *"][-2] == "–"


def test_the_curves_are_means_over_seeds_with_the_error_of_each():
    curves = forecast_tables([record("texas")]).split("\n\n")[1]
    assert "|texas|trained|50.0|80.0|65.0|||" in curves
    assert "||64 layers, to the end|70.0|70.0|70.0|11.7 ± 1.7|11.7 ± 1.7|" in curves
    assert "|**mean of 1 held out**|all six, 60 epochs||||11.7|11.7|" in curves


def test_one_score_has_no_error_and_nothing_is_less_than_nothing():
    assert spread([-0.0001]) == "0.0"
    assert (spread([0.5]), spread([0.4, 0.6])) == ("50.0", "50.0 ± 10.0")
