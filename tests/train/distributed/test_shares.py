"""Masks, cuts and refusals, in one process."""

import numpy as np
import pytest
import torch
from torch.func import vmap

from gcnii import data
from gcnii.dropout import Words, epoch_key, keep_mask, words_of
from gcnii.errors import InputError
from gcnii.nn import MODELS
from gcnii.propagation import adjacency
from gcnii.propagation.sparse import RowNumbers
from gcnii.train.distributed import shard as cutting
from gcnii.train.distributed.shard import refuse
from gcnii.train.plan import make_plan

KEYS = epoch_key(torch.tensor([3, 4]), 5)


@pytest.mark.parametrize("width", [1, 2, 7, 8])
def test_a_share_draws_its_rows_of_the_whole_mask(width):
    whole = keep_mask(KEYS, 20 * width, 40_000).view(2, 20, width)
    nodes = torch.tensor([19, 0, 7, 8, 3])
    words = words_of(RowNumbers(nodes), (5, width))
    assert torch.equal(keep_mask(KEYS, 5 * width, 40_000, words).view(2, 5, width), whole[:, nodes])
    each = vmap(lambda key: keep_mask(key, 5 * width, 40_000, words))(KEYS)
    assert torch.equal(each.view(2, 5, width), whole[:, nodes])


def test_a_share_draws_the_masks_of_its_stored_values():
    entries = torch.tensor([4, 5, 6, 11, 12])
    words = words_of(RowNumbers(torch.tensor([1, 3]), entries), (5,))
    assert torch.equal(
        keep_mask(KEYS[0], 5, 30_000, words), keep_mask(KEYS[0], 20, 30_000)[entries]
    )


def test_elements_beyond_32_bits_have_masks_of_their_own():
    far = Words.of(torch.tensor([3_000_000_000 * 256, 3_000_000_001 * 256]), 256)
    near = Words.of(torch.tensor([0, 256]), 256)
    one, other = (keep_mask(KEYS[0], 512, 1 << 15, words).double() for words in (far, near))
    assert 0.4 < one.mean() < 0.6
    assert abs(torch.corrcoef(torch.stack([one, other]))[0, 1]) < 0.2


def test_blocks_are_contiguous_and_of_equal_size():
    assert cutting.blocks(7, 3).tolist() == [0, 0, 0, 1, 1, 2, 2]


def test_metis_leaves_no_process_without_nodes_and_cuts_fewer_links_than_blocks():
    pytest.importorskip("pymetis")
    A = adjacency(data.load("digits"))
    labels = cutting.partition(A, 4)
    assert sorted(set(labels.tolist())) == [0, 1, 2, 3]
    blocks = cutting.blocks(A.shape[0], 4)
    assert cutting.crossing(A, labels) < 0.5 * cutting.crossing(A, blocks)


def test_without_metis_it_is_said_what_blocks_cost(monkeypatch):
    monkeypatch.setattr(cutting, "metis", lambda A, parts: None)
    with pytest.warns(UserWarning, match=r"pymetis is not installed.* \d+% of its edges"):
        labels = cutting.partition(adjacency(data.load("csbm", n=60)), 3)
    assert np.array_equal(labels, cutting.blocks(60, 3))


def test_models_that_look_at_single_links_say_that_they_cannot():
    unable = [name for name, model in MODELS.items() if not model.can_be_cut]
    assert {"gat", "ppnp", "jknet", "graphsage-mean"} <= set(unable)
    for name in unable:
        with pytest.raises(InputError, match=f"{name} cannot be trained by several processes"):
            refuse(make_plan(name, {}), 100, 2)


def test_batches_and_too_many_processes_are_refused():
    with pytest.raises(InputError, match="the full graph on its own edges, got batches clusters"):
        refuse(make_plan("gcnii", {"batches": "clusters"}), 100, 2)
    with pytest.raises(InputError, match="a graph of 3 nodes cannot be cut over 4 processes"):
        refuse(make_plan("gcnii", {}), 3, 4)
