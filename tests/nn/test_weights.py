"""The first weights of a seed: the same since version 0.1, in any thread, whatever is set."""

import hashlib
import json
import threading
from pathlib import Path

import pytest
import torch
from support.fitting import fitting

from gcnii.nn import MODELS
from gcnii.train.plan import make_plan

# Written by version 0.1, with weights drawn from torch's own generator.
DIGESTS = json.loads((Path(__file__).parents[1] / "support" / "first_weights.json").read_text())


def built(name, seed=7):
    return make_plan(name, fitting(name, {"layers": 3, "width": 8})).build(11, 5, seed)


def digest(model):
    found = hashlib.sha256()
    for name, weight in model.named_parameters():
        found.update(f"{name} {tuple(weight.shape)} {weight.dtype}".encode())
        found.update(weight.detach().contiguous().numpy().tobytes())
    return found.hexdigest()[:16]


@pytest.fixture
def odd_defaults():
    """Another default dtype and device than torch starts with."""
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    yield
    torch.set_default_device(None)
    torch.set_default_dtype(torch.float32)


def test_every_model_has_its_weights_on_record():
    assert set(DIGESTS) == set(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_the_first_weights_of_a_seed_are_what_they_were(name):
    before = torch.get_rng_state()
    assert digest(built(name)) == DIGESTS[name]
    assert torch.equal(torch.get_rng_state(), before)  # no model draws from torch's generator


@pytest.mark.usefixtures("odd_defaults")
@pytest.mark.parametrize("name", ["gcnii", "gcn", "gaan", "jknet-lstm", "dropedge-gcn"])
def test_the_caller_s_default_dtype_and_device_do_not_change_them(name):
    assert digest(built(name)) == DIGESTS[name]


def test_weights_do_not_depend_on_what_other_threads_draw():
    done, wrong = threading.Event(), []

    def draw():
        while not done.is_set():
            torch.rand(100)

    other = threading.Thread(target=draw)
    other.start()
    for _ in range(50):
        wrong += [name for name in ("gcnii", "appnp") if digest(built(name)) != DIGESTS[name]]
    done.set()
    other.join()
    assert not wrong
