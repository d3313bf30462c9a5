"""Numbers beyond 2³¹ of nodes, links and elements: masks are right, and nothing overflows."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from support.to_itself import alone
from support.together import graph_of

from gcnii.data import load_share
from gcnii.dropout import LEVELS, _words, epoch_key, keep_mask, words_of
from gcnii.errors import InputError
from gcnii.graph import Piece
from gcnii.propagation.sparse import MOST, Pattern, RowNumbers
from gcnii.train.distributed.shard import AdjacencyRows, Halo, pack
from gcnii.train.recipe import Recipe

pytestmark = pytest.mark.filterwarnings("ignore:pymetis is not installed")
FAR = 5_000_000_000  # beyond 2³², and so beyond what int32 and uint32 count
KEY = epoch_key(torch.tensor([3]), 5)[0]


def mixed(x):
    """`keys.mix`, on 32-bit words as numpy has them."""
    for shift, factor in ((16, 0x21F0AAAD), (15, 0x735A2D97)):
        x = (x ^ (x >> np.uint32(shift))) * np.uint32(factor)
    return x ^ (x >> np.uint32(15))


def literal_mask(key, elements, kept):
    """Zeros and ones of elements by their numbers, as the hash is written down."""
    first, second = key.numpy().view(np.uint32)
    numbers = np.asarray(elements, np.uint64)
    x = mixed((numbers // 2).astype(np.uint32)) ^ first
    x = x * np.uint32(0x21F0AAAD)
    x = x ^ (x >> np.uint32(15))
    x = (x + second) * np.uint32(0x735A2D97)
    x = x ^ (x >> np.uint32(15))
    lanes = (x >> (16 * (numbers % 2)).astype(np.uint32)).astype(np.uint16).view(np.int16)
    return (lanes.astype(int) < kept - LEVELS // 2).astype(int)


def test_the_literal_hash_is_that_of_masks():
    whole = keep_mask(KEY, 1001, 40_000)
    assert np.array_equal(literal_mask(KEY, np.arange(1001), 40_000), whole)
    assert 400 < whole.sum() < 800


@pytest.mark.parametrize("width", [1, 64, 7])
def test_rows_of_a_matrix_of_more_than_two_to_the_31_elements(width):
    nodes = torch.tensor([FAR // 64, FAR // 64 + 1, FAR, 2 * FAR + 3])
    mask = keep_mask(KEY, 4 * width, 40_000, words_of(RowNumbers(nodes), (4, width)))
    elements = nodes.numpy()[:, None] * width + np.arange(width)
    assert np.array_equal(mask, literal_mask(KEY, elements.flatten(), 40_000))


def test_all_words_of_such_a_matrix_are_counted():
    assert _words.__wrapped__(2**31 + 8, torch.device("meta")).shape == (2**31 + 8,)


def test_links_beyond_two_to_the_31_keep_their_numbers(tmp_path):
    """A piece of a graph of billions of nodes and links, made of a small one by moving it."""
    pack(graph_of(n=60, directed=True), tmp_path / "graph", 2)
    near = load_share(tmp_path / "graph", 0, 2)
    first = {direction: each + FAR for direction, each in near.places.first.items()}
    halo, pairs = near.places.halo + FAR, near.places.pairs + FAR
    places = replace(near.places, first=first, halo=halo, pairs=pairs)
    names = ("X", "y", "splits", "directed", "weights")
    same = {name: getattr(near, name) for name in names}
    whole = replace(near.whole, n=60 + FAR)
    rows, edges = near.rows + FAR, near.edges + FAR
    far = Piece(rows=rows, whole=whole, places=places, edges=edges, **same)
    for direction in ("out", "in", "both"):
        recipe = Recipe(direction=direction, drop_edge=0.5, drop_form="pairs")
        one, other = (AdjacencyRows.of_piece(p, recipe) for p in (near, far))
        for name in ("own", "column", "halo", "numbers"):
            assert torch.equal(getattr(one, name) + FAR, getattr(other, name)), name
        assert torch.equal(one.pairs + FAR, other.pairs)
        assert torch.equal(one.row, other.row)
        words = words_of(RowNumbers(other.numbers, other.numbers), other.numbers.shape)
        mask = keep_mask(KEY, len(other.numbers), 30_000, words)
        assert np.array_equal(mask, literal_mask(KEY, other.numbers, 30_000))


def test_nodes_are_asked_for_by_large_numbers():
    own = torch.tensor([FAR, FAR + 2, FAR + 5])
    with alone() as world:
        halo = Halo.of(world, own[[1, 2]], torch.tensor([0, 0]), own)
        assert halo.nodes.tolist() == [FAR + 2, FAR + 5]
        assert halo.sent.tolist() == [1, 2]
        assert halo.fetched(torch.tensor([1.0, 2.0, 3.0])).tolist() == [2, 3]
        assert halo.returned(torch.tensor([4.0, 5.0])).tolist() == [0, 4, 5]
        assert world.gathered(own).tolist() == own.tolist()


def test_more_entries_than_one_process_can_count_are_refused():
    row = torch.empty(MOST + 1, device="meta", dtype=torch.int64)
    sentence = r"one process can hold a sparse matrix of 2,147,483,647 entries.* got 2,147,483,648"
    with pytest.raises(InputError, match=sentence):
        Pattern.from_sorted(row, row, (4, 4))
    many = SimpleNamespace(indices=np.broadcast_to(np.int32(0), MOST + 1), shape=(4, 4))
    with pytest.raises(InputError, match="gcnii data pack --parts"):
        Pattern.of(many)
    block = Pattern(torch.zeros(2), torch.empty(2**20, device="meta"), (1, 1))
    with pytest.raises(InputError, match="train fewer runs at once"):
        block._repeated(2**11)
