"""Whatever comes in, the answer is right or one sentence: some cases of every kind."""

import pytest

from gcnii.data import load
from hostile.judging import Wrong, answer_of, judge_sentence
from hostile.run import KINDS, report, run_kind
from hostile.tables import compare, meaning_of_graph


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_case_is_answered_properly(kind):
    tally = run_kind(kind, range(KINDS[kind].quick))
    if tally.skipped:
        pytest.skip(tally.skipped)
    assert not tally.failures, "\n".join(report([tally]))


def test_the_judge_notices_another_graph(tmp_path):
    (tmp_path / "nodes.csv").write_text("id,x,label\na,1,c\nb,2,d\nc,3,c\nd,5,d\ne,1,c\nf,2,d\n")
    (tmp_path / "edges.csv").write_text("source,target\na,b\nb,c\n")
    graph = answer_of(lambda: load(tmp_path)).value
    whole = meaning_of_graph(graph)
    compare(graph, whole)
    others = (
        whole._replace(nodes=whole.nodes[::-1]),
        whole._replace(labels=whole.labels | {"a": "d"}),
        whole._replace(edges=whole.edges | {("a", "c"): 1.0}),
        whole._replace(edges=whole.edges | {("a", "b"): 2.0}),
        whole._replace(cells=whole.cells | {("x", "a"): 1.5}),
    )
    for other in others:
        with pytest.raises(Wrong):
            compare(graph, other)


@pytest.mark.parametrize("words", ["two\nlines", "\x1b[31mred", "x" * 1000])
def test_the_judge_takes_one_short_line_alone(words):
    with pytest.raises(Wrong):
        judge_sentence(words)
