"""What is written appears whole or not at all."""

import errno

import pytest

from gcnii.files import atomic_write


def test_a_file_takes_its_place_when_it_is_whole(tmp_path):
    with atomic_write(tmp_path / "deep" / "file") as temporary:
        temporary.write_text("new")
        assert not (tmp_path / "deep" / "file").exists()
    assert (tmp_path / "deep" / "file").read_text() == "new"
    assert len(list((tmp_path / "deep").iterdir())) == 1


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(FileNotFoundError), atomic_write(path) as temporary:
        temporary.with_name("nothing").read_text()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_is_told_with_the_name_of_the_file(tmp_path):
    with pytest.raises(OSError, match="No space left") as told, atomic_write(tmp_path / "file"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert told.value.filename == str(tmp_path / "file")
