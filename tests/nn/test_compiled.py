"""Layers that this machine's compiler made: torch's numbers, only faster, or torch itself."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch.func import functional_call, vmap

import gcnii
from gcnii.dropout import epoch_key, keyed
from gcnii.kernels import compiled
from gcnii.nn import MODELS
from gcnii.nn.engine import fused

MODEL_NAMES = ["gcnii", "gcnii-star", "gcnii-ppi", "gcnii-star-ppi"]
WIDTHS = [32, 64, 96, 256]


@pytest.fixture(scope="module")
def library():
    found = fused._library()
    if found is None:
        pytest.skip("this machine has no C compiler for Linux on x86")
    return found


@pytest.fixture
def plain(monkeypatch):
    """A function after which torch's operations compute."""
    return lambda: monkeypatch.setattr(fused, "_library", lambda: None)


def step(name, width, n=301, replicas=1):
    """Scores, their gradients, and the scores of an evaluation."""
    graph = gcnii.load("csbm", n=n, classes=3, features=7)
    torch.manual_seed(0)
    model = MODELS[name](graph.d, graph.k, layers=4, width=width)
    P, X = gcnii.propagation_matrix(graph), gcnii.feature_matrix(graph)
    weights = {
        key: torch.stack([W.detach() * 1.1**i for i in range(replicas)]).requires_grad_()
        for key, W in model.named_parameters()
    }

    def one(weights, key):
        with keyed(key):
            return functional_call(model, weights, (P, X))

    scores = vmap(one)(weights, epoch_key(torch.arange(replicas), 3))
    scores.square().sum().backward()
    model.eval()
    with torch.no_grad():
        later = vmap(one)(weights, epoch_key(torch.arange(replicas), 4))
    return scores.detach(), later, {key: W.grad for key, W in weights.items()}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", MODEL_NAMES)
def test_compiled_layers_have_the_numbers_of_torch(name, width, library, plain):
    found = step(name, width)
    plain()
    expected = step(name, width)
    for one, other in zip(found[:2], expected[:2], strict=True):
        assert torch.allclose(one, other, rtol=1e-4, atol=1e-5 * other.abs().max())
    for key, gradient in expected[2].items():
        assert torch.allclose(found[2][key], gradient, rtol=1e-4, atol=1e-5 * gradient.abs().max())


def test_masks_are_those_of_torch_to_the_last_element(library, plain):
    graph = gcnii.load("csbm", n=97)
    P, H = gcnii.propagation_matrix(graph), torch.rand(97, 64) + 1

    def dropped():
        """Which entries of the first of two layers are zero: all are positive before dropout."""
        values, key = P.values[None], torch.tensor([[[5, -7]], [[-3, 9]]], dtype=torch.int32)
        call = fused.FusedCall(P.pattern, 0.1, 0.0, 20_000, saves=True)
        M = torch.full((2, 1, 64, 64), 0.1)
        given = (values, H[None], H[None], M, None, key, call)
        outputs, _ = fused._forward_on_cpu(*given, fused._library_for(H[None], call))
        return outputs[0] == 0

    found = dropped()
    assert 0.6 < found.float().mean() < 0.8  # 20,000 of 65,536 are kept
    plain()
    assert torch.equal(found, dropped())


def test_replicas_have_the_bits_of_one_alone(library):
    together = step("gcnii-star", 64, replicas=3)
    alone = step("gcnii-star", 64)
    assert torch.equal(together[0][0], alone[0][0])
    for key, gradient in alone[2].items():
        assert torch.allclose(together[2][key][0], gradient[0], rtol=1e-5, atol=1e-7), key


def test_bits_do_not_depend_on_the_number_of_threads(library):
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append(step("gcnii-star-ppi", 64, n=2000))
    finally:
        torch.set_num_threads(before)
    convs = [key for key in found[0][2] if key.startswith("convs")]
    for other in found[1:]:
        assert all(torch.equal(found[0][2][key], other[2][key]) for key in convs)
        assert torch.equal(found[0][1], other[1])


def test_numbers_that_are_not_finite_stay_so(library, plain):
    path = np.stack([np.arange(20), np.arange(1, 21)])
    graph = gcnii.Graph(X=np.eye(21, 4), edges=path, y=np.arange(21) % 3)
    model = MODELS["gcnii"](4, 3, layers=3, width=32).eval()
    P, X = gcnii.propagation_matrix(graph), gcnii.feature_matrix(graph).to_dense()
    X[7] = torch.nan
    found = model(P, X).isnan()
    assert found.all(1).nonzero().flatten().tolist() == list(range(4, 11))  # three steps away
    plain()
    assert torch.equal(found, model(P, X).isnan())


def test_nodes_without_neighbours_and_graphs_of_one_node(library, plain):
    graph = gcnii.Graph(X=np.eye(3, 4), edges=np.zeros((2, 0), int), y=np.arange(3))
    model = MODELS["gcnii"](4, 3, layers=2, width=32).eval()
    for one in (graph, gcnii.Graph(X=np.ones((1, 4)), edges=np.zeros((2, 0), int), y=[0])):
        for loops in ("add", "none"):
            P = gcnii.propagation_matrix(one, loops=loops)
            X = gcnii.feature_matrix(one)
            found = model(P, X)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(fused, "_library", lambda: None)
                assert torch.allclose(found, model(P, X), atol=1e-6)


FIT = """
import gcnii, torch
from gcnii.nn.engine import fused
result = gcnii.fit(gcnii.load("csbm", n=60), "gcnii", layers=2, width=32, epochs=3, device="cpu")
print(fused._library() is not None, f"{result.test[0]:.4f}")
"""


def fitted(home, says="", **environment):
    """Whether layers were compiled by a process with this home that says this, and its score."""
    given = os.environ | {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")} | environment
    run = subprocess.run(
        [sys.executable, "-c", FIT], env=given, capture_output=True, text=True, check=True
    )
    assert says in run.stderr
    assert run.stderr.count("\n") == (1 if says else 0)
    found, score = run.stdout.split()
    return found == "True", score


def libraries(home):
    return {path: path.stat().st_mtime_ns for path in home.rglob("*.so")}


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.slow
def test_the_library_is_made_once_and_kept(library, tmp_path):
    assert fitted(tmp_path)[0]
    (made,) = libraries(tmp_path).items()
    assert fitted(tmp_path)[0]
    assert libraries(tmp_path) == dict([made])
    assert made[0].parent.stat().st_mode & 0o077 == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "made", "says"),
    [
        ("echo broken >&2; exit 1", 1, "cc cannot compile layers (broken); torch computes them"),
        # A library whose ReLU lets everything through.
        (
            "for source; do :; done; sed 's/(z < 0)/(z < -1e30f)/' \"$source\" > $0.c\n"
            'exec cc -O1 -march=native -fopenmp -shared -fPIC -o "$7" $0.c',
            2,
            "compiled layers are left out, whose numbers are not torch's; torch computes them",
        ),
    ],
)
def test_where_a_compiler_fails_or_errs_torch_computes(library, text, made, says, tmp_path):
    score = fitted(tmp_path)[1]
    compiler = script(tmp_path / "cc", text)
    assert fitted(tmp_path, says, GCNII_CC=compiler) == (False, score)
    assert len(libraries(tmp_path)) == made
    assert fitted(tmp_path, GCNII_CC="") == (False, score)
    typo = "GCNII_CC is gcx, which is no program here; torch computes them"
    assert fitted(tmp_path, typo, GCNII_CC="gcx") == (False, score)


@pytest.mark.slow
def test_a_folder_that_others_may_write_to_is_not_trusted(library, tmp_path):
    folder = tmp_path / "cache" / "gcnii" / "compiled"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    assert fitted(tmp_path)[0]
    assert not libraries(tmp_path)


def test_the_library_has_the_limits_that_python_knows():
    text = compiled.SOURCE.read_text("utf-8")
    assert f"#define WIDEST {compiled.WIDEST}\n" in text
