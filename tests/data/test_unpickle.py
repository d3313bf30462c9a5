"""A pickle from outside builds values and runs nothing."""

import os
import pickle
from collections import defaultdict

import numpy as np
import pytest
import scipy.sparse as sp

from gcnii.data.benchmarks import unpickle


class Hostile:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


def dump(path, value, protocol):
    path.write_bytes(pickle.dumps(value, protocol))
    return path


@pytest.mark.parametrize(
    "wrap", [lambda value: value, lambda value: defaultdict(list, {0: [value]})]
)
@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_a_hostile_pickle_runs_nothing(tmp_path, wrap, protocol):
    path = dump(tmp_path / "ind.cora.x", wrap(Hostile(tmp_path / "pwned")), protocol)
    with pytest.raises(KeyError, match="system"):
        unpickle(path)
    assert not (tmp_path / "pwned").exists()
    pickle.loads(path.read_bytes())  # it would have
    assert (tmp_path / "pwned").exists()


@pytest.mark.parametrize(
    "name", [b"builtins eval", b"builtins getattr", b"numpy.lib load", b"_codecs encode"]
)
def test_what_is_not_listed_is_refused(tmp_path, name):
    path = tmp_path / "file"
    path.write_bytes(b"c" + name.replace(b" ", b"\n") + b"\n.")
    with pytest.raises(KeyError, match=name.decode().split()[1]):
        unpickle(path)


@pytest.mark.parametrize("protocol", [3, 4])
def test_arrays_matrices_and_neighbours_come_back(tmp_path, protocol):
    values = (
        np.arange(6.0).reshape(2, 3),
        sp.csr_matrix(np.eye(3, 4)),
        defaultdict(list, {0: [1, 2]}),
    )
    array, matrix, neighbours = (
        unpickle(dump(tmp_path / "file", value, protocol)) for value in values
    )
    assert (array == values[0]).all()
    assert (matrix.toarray() == values[1].toarray()).all()
    assert neighbours == values[2]
