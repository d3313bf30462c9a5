"""Malformed tables are refused in one sentence, and nothing is silently accepted."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gcnii.data import load
from gcnii.data.converters.frames import from_frames
from gcnii.errors import DataError, InputError

CASES = sorted((Path(__file__).parent / "hostile").iterdir())
QUIET = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

names = st.sampled_from(["id", "label", "split", "x", "y", "", "ID", "weight", "source", "x y"])
cell = st.one_of(
    st.sampled_from(
        [
            *("", "a", "b", "1", "01", "1.0", "-0", "nan", "NaN", "inf", "1e39", "1e999", "null"),
            *("NA", "train", "val", "test", "True", "2024-01-02", "=1+1", '"', "a,b", "a;b"),
            *("é", "\n", " 7"),
        ]
    ),
    st.text(max_size=4),
)


@st.composite
def tables(draw):
    """Lines of a CSV file: mostly a table, sometimes ragged."""
    header = draw(st.lists(names, min_size=1, max_size=5))
    rows = draw(st.lists(st.lists(cell, min_size=1, max_size=5), max_size=8))
    if draw(st.booleans()):
        rows = [(row * len(header))[: len(header)] for row in rows]
    separator = draw(st.sampled_from([",", ",", ",", ";", "\t"]))
    return "\n".join(separator.join(row) for row in [header, *rows])


def answer(make):
    """The graph or None, and the sentence with which it was refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return make(), ""
        except InputError as error:
            return None, str(error)


@pytest.mark.slow
@QUIET
@given(nodes=tables(), edges=tables())
def test_a_folder_is_a_graph_or_is_refused_in_a_sentence(tmp_path, nodes, edges):
    write(tmp_path, nodes, edges)
    before = sorted(tmp_path.iterdir())
    graph, sentence = answer(lambda: load(tmp_path))
    assert "\n" not in sentence
    assert len(sentence) < 1000
    assert graph is None or graph.n == len(set(graph.nodes))
    assert graph is None or np.isfinite(graph.X).all()
    assert sorted(tmp_path.iterdir()) == before


def write(folder, nodes, edges):
    for name, text in (("nodes.csv", nodes), ("edges.csv", edges)):
        (folder / name).write_bytes(text.encode("utf-8", "surrogatepass"))


values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.integers(2**60, 2**70),
    st.floats(),
    st.text(max_size=3),
    st.dates(),
    st.sampled_from([pd.NA, pd.NaT, "train", "val", "a", (1, 2), b"x"]),
)


@QUIET
@given(data=st.data())
def test_a_frame_is_a_graph_or_is_refused_in_a_sentence(data):
    def frame(columns):
        rows = data.draw(st.integers(0, 6))
        own = st.one_of(st.just(values), st.sampled_from([st.integers(0, 5), st.floats()]))
        cells = {c: [data.draw(data.draw(own)) for _ in range(rows)] for c in columns}
        return pd.DataFrame(cells)

    nodes = frame(data.draw(st.lists(names, unique=True, max_size=4)))
    edges = frame(["source", "target", *data.draw(st.sampled_from([[], ["weight"], ["z"]]))])
    graph, sentence = answer(lambda: from_frames(nodes, edges))
    assert "\n" not in sentence
    assert graph is None or graph.n == len(nodes)


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_a_case_that_was_found_is_answered_as_it_should_be(case):
    """Each folder holds two tables, and in `expected` the words of the answer."""
    expected = (case / "expected").read_text("utf-8").strip()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            load(case)
        except DataError as error:
            answers = error.problems
        else:
            answers = [str(warning.message) for warning in said]
    assert any(expected in answer for answer in answers), answers
