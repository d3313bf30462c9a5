"""A training that is killed right after it has saved a checkpoint."""

from contextlib import contextmanager
from unittest import mock

from gcnii.train.checkpoint import Checkpoint

SAVE = Checkpoint.save


class Killed(Exception):
    pass


def _save_and_die(checkpoint, path):
    SAVE(checkpoint, path)
    raise Killed


@contextmanager
def killed_after_a_save():
    """Within, the first checkpoint is the last thing that a training does."""
    with mock.patch.object(Checkpoint, "save", _save_and_die):
        yield
