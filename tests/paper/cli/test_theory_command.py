"""gcnii theory: tables, JSON, the figure, and your own graph."""

import json

import pytest
from support.command_line import call, write_pets

TITLES = (
    "Theorem 1: ",
    "Conjecture 1: ",
    "Theorem 2: ",
    "Band pass with ε",
    "Section 3: ",
    "Where the paper slips",
)


@pytest.fixture(scope="module")
def document(tmp_path_factory):
    """The output of `gcnii theory --json` on the built-in graph, with a filter of our own."""
    answer = call("theory", "--theta=-1,0,0.5", "--json", cwd=tmp_path_factory.mktemp("json"))
    assert (answer.code, answer.err) == (0, "")
    return json.loads(answer.out)


def test_every_theorem_and_slip_is_printed_on_the_karate_club_by_default(tmp_path):
    answer = call("theory", cwd=tmp_path)
    assert (answer.code, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert lines[0] == "karate: 34 nodes, 78 edges, connected"
    assert lines[1] == "λ = 0.103858 (all eigenvalues); P̃'s eigenvalues lie in [-0.420, 1]"
    assert lines[2] == (
        "layers K until the bound falls to 0.001: "
        "130 by (1 - λ/2)^K, 1,278 by the printed (1 - λ²/2)^K"
    )
    titles = [line for line in lines if line.startswith(TITLES)]
    assert all(line.startswith(title) for line, title in zip(titles, TITLES, strict=True))
    slips = lines[
        lines.index("Where the paper slips, with examples on the star 0–1, 0–2, 0–3:") + 1 :
    ]
    assert len(slips) == 8
    assert all(line.startswith("- ") and line.endswith(".") for line in slips)


def test_json_is_one_document_with_every_theorem(document):
    assert (document["graph"], document["nodes"], document["edges"], document["components"]) == (
        "karate",
        34,
        78,
        1,
    )
    assert document["depth_to_a_thousandth"] == {"spectral": 130, "printed": 1278}
    one, two = document["distances"]["e_i"], document["distances"]["e_i - e_j"]
    assert all(row["distance"] <= row["printed"] + 1e-12 for row in one)
    assert all(row["printed"] == 0 < row["distance"] <= row["corrected"] for row in two)
    assert [group["nodes"] for group in document["by_degree"]["groups"]] == [1, 17, 11, 3, 2]
    assert len(document["slips"]) == 8
    assert document["plot"] is None
    assert max(row["difference"] for row in document["lasso"]) < 1e-12


def test_a_filter_of_your_own_is_realised_beside_the_named_ones(document):
    own = document["filters"][-1]
    assert (own["name"], own["theta"]) == ("yours", [-1, 0, 0.5])
    assert max(own["two_channels"], own["four_channels"], own["horner"]) < 1e-9 < own["as_printed"]


def test_the_figure_has_four_panels(tmp_path):
    answer = call("theory", "--plot", "a figure.svg", cwd=tmp_path)
    assert answer.out.splitlines()[-1] == "plot a figure.svg"
    text = (tmp_path / "a figure.svg").read_text()
    for question in (
        "How fast is a signal gone?",
        "Do hubs arrive first?",
        "Can the network be this filter?",
        "ISTA",
    ):
        assert question in text


def test_a_disconnected_graph_is_studied_by_components(tmp_path):
    write_pets(tmp_path / "pets")
    document = json.loads(call("theory", "pets", "--json", cwd=tmp_path).out)
    assert (document["nodes"], document["components"]) == (12, 2)
    assert document["gap"] == pytest.approx(1 / 3)  # two cycles of six: ⅔ (1 - cos 60°)
    # though all degrees are equal, i is not j
    assert document["distances"]["e_i - e_j"][0]["distance"] == 1
    assert (
        "12 nodes, 12 edges, 2 components, the largest of 6 nodes"
        in call("theory", "pets", cwd=tmp_path).out
    )


def test_on_a_benchmark_lanczos_finds_the_gap(real_data, tmp_path):
    real_data("cora")
    answer = call("theory", "cora", "--plot", "cora.png", cwd=tmp_path)
    assert (answer.code, answer.err) == (0, "")
    assert "λ = 0.003621 (Lanczos); P̃'s eigenvalues lie in [-0.483, 1]" in answer.out
    assert "falls to 0.001: 3,813 by" in answer.out
    assert (tmp_path / "cora.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["--theta", "1,two"],
            "--theta must be numbers separated by commas, such as 1,-0.5,0.25, got '1,two'",
        ),
        (
            ["--theta", "1,nan"],
            "--theta must be numbers separated by commas, such as 1,-0.5,0.25, got '1,nan'",
        ),
        (["--plot", "figure.pdf"], "--plot must end in .png or .svg, got figure.pdf"),
        (["coar"], "did you mean 'cora'?"),
    ],
)
def test_wrong_usage_is_answered_in_one_sentence(words, sentence, tmp_path):
    answer = call("theory", *words, cwd=tmp_path)
    assert (answer.code, answer.out) == (2, "")
    assert sentence in answer.err
    assert answer.err.count("\n") == 1
