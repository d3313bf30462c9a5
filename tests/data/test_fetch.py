"""Files come from the cache, a mirror or upstream, and none is used unchecked."""

import subprocess
import sys
import threading

import pytest
from support import knobs
from support.local_server import CONTENT
from support.waiting import PATIENCE

from gcnii.data import download, fetch, load
from gcnii.errors import DataError


def leftovers(folder):
    return [path.name for path in folder.rglob("*") if path.is_file()]


def cut(times, resumable=True):
    """An answer that breaks off after 1000 bytes, the first `times` times."""
    left = [times]

    def answer(handler):
        left[0] -= 1
        if left[0] < 0:
            handler.send(CONTENT, resumable=resumable)
        else:
            handler.send(CONTENT, length=1000, resumable=resumable)
        return True

    return answer


def refuse(code, times=99):
    left = [times]

    def answer(handler):
        left[0] -= 1
        if left[0] >= 0:
            handler.send_error(code)
        return left[0] >= 0

    return answer


def test_a_file_is_downloaded_once(server, toy, cache):
    assert fetch("toy") == fetch("toy") == [cache / "toy/file.bin"]
    assert (cache / "toy/file.bin").read_bytes() == CONTENT
    assert len(server.requests) == 1
    assert load("toy").name == "toy"


def test_nothing_but_the_file_is_left_in_the_cache(toy, cache):
    fetch("toy")
    assert leftovers(cache) == ["file.bin"]


def test_a_damaged_cached_file_is_fetched_again(server, toy, cache):
    fetch("toy")[0].write_bytes(b"damaged")
    assert fetch("toy")[0].read_bytes() == CONTENT
    assert len(server.requests) == 2


def test_wrong_bytes_are_refused_and_not_kept(server, toy, cache):
    server.files["/toy/file.bin"] = b"wrong"
    with pytest.raises(
        DataError,
        match=r"file\.bin is not the file in the catalog: expected sha256:\w+, got sha256:\w+; t",
    ):
        fetch("toy")
    assert leftovers(cache) == []


def test_a_cut_download_resumes_where_it_stopped(server, toy):
    server.answer = cut(2)
    assert fetch("toy")[0].read_bytes() == CONTENT
    assert [wanted for _, wanted in server.requests] == [None, "bytes=1000-", "bytes=2000-"]


def test_a_cut_download_starts_again_where_the_server_cannot_resume(server, toy):
    server.answer = cut(2, resumable=False)
    assert fetch("toy")[0].read_bytes() == CONTENT


def test_a_download_starts_again_when_the_rest_cannot_be_had(server, toy):
    first = cut(1)
    server.answer = lambda handler: (
        refuse(416)(handler) if handler.headers.get("Range") else first(handler)
    )
    assert fetch("toy")[0].read_bytes() == CONTENT


def test_a_download_that_is_always_cut_ends_in_one_sentence(server, toy, cache):
    server.answer = cut(99, resumable=False)
    with pytest.raises(
        DataError,
        match=r"in 4 attempts \(the connection was cut after 1000 of 262144 bytes\); check the",
    ):
        fetch("toy")
    assert leftovers(cache) == []
    assert len(server.requests) == download.ATTEMPTS


def test_a_transient_server_error_is_overcome(server, toy):
    server.answer = refuse(503, times=2)
    assert fetch("toy")[0].read_bytes() == CONTENT


def test_a_lasting_server_error_is_named(server, toy):
    server.answer = refuse(503)
    with pytest.raises(
        DataError, match=r"in 4 attempts \(HTTP 503 Service Unavailable\); check the network"
    ):
        fetch("toy")


def test_a_missing_file_is_asked_for_once(server, toy):
    server.files.clear()
    with pytest.raises(
        DataError,
        match=r"could not download http.*file\.bin \(HTTP 404 Not Found\); set GCNII_MIRROR",
    ):
        fetch("toy")
    assert len(server.requests) == 1


def test_a_silent_server_is_given_up_on(server, toy, monkeypatch):
    monkeypatch.setattr(download, "TIMEOUT", 0.05)
    monkeypatch.setattr(knobs.ATTEMPTS, 2)
    # waits until the other side hangs up
    server.answer = lambda handler: handler.rfile.read(1) == b""
    with pytest.raises(DataError, match=r"in 2 attempts \(timed out\)"):
        fetch("toy")


def test_a_server_that_falls_silent_midway_is_asked_for_the_rest(server, toy, monkeypatch):
    monkeypatch.setattr(download, "TIMEOUT", 0.2)
    first = cut(1)
    server.answer = lambda handler: first(handler) and handler.rfile.read(1) == b""
    assert fetch("toy")[0].read_bytes() == CONTENT


def test_no_server_at_all_ends_in_one_sentence(toy, server, monkeypatch):
    monkeypatch.setenv("GCNII_MIRROR", "http://127.0.0.1:9")
    with pytest.raises(
        DataError,
        match=r"could not download http://127.0.0.1:9/toy/file.bin in 4 attempts \(.*refused",
    ):
        fetch("toy")


def test_a_mirror_folder_is_used_in_place(server, toy, cache, monkeypatch, tmp_path):
    (tmp_path / "mirror/toy").mkdir(parents=True)
    (tmp_path / "mirror/toy/file.bin").write_bytes(CONTENT)
    monkeypatch.setenv("GCNII_MIRROR", str(tmp_path / "mirror"))
    assert fetch("toy", offline=True) == [tmp_path / "mirror/toy/file.bin"]
    assert not cache.exists()
    assert server.requests == []


def test_a_wrong_file_in_a_mirror_folder_is_an_error(toy, monkeypatch, tmp_path):
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy/file.bin").write_bytes(b"wrong")
    monkeypatch.setenv("GCNII_MIRROR", str(tmp_path))
    with pytest.raises(
        DataError, match=r"expected sha256:\w+, got sha256:\w+; replace it, or unset GCNII_MIRROR"
    ):
        fetch("toy")


def test_what_a_mirror_folder_lacks_comes_from_upstream(toy, cache, monkeypatch, tmp_path):
    monkeypatch.setenv("GCNII_MIRROR", str(tmp_path))
    assert fetch("toy") == [cache / "toy/file.bin"]


def test_a_mirror_that_is_not_a_folder_is_named(toy, monkeypatch, tmp_path):
    monkeypatch.setenv("GCNII_MIRROR", str(tmp_path / "nowhere"))
    with pytest.raises(
        DataError, match=r"GCNII_MIRROR must be a folder or an http\(s\) address, got '.*nowhere'"
    ):
        fetch("toy")


def test_a_mirror_can_be_an_address(server, toy, cache, monkeypatch):
    server.files = {"/copy/toy/file.bin": CONTENT}
    monkeypatch.setenv("GCNII_MIRROR", f"{server.address}/copy/")
    assert fetch("toy") == [cache / "toy/file.bin"]


def test_what_a_mirror_address_lacks_comes_from_upstream(server, toy, monkeypatch):
    monkeypatch.setenv("GCNII_MIRROR", f"{server.address}/copy")
    assert fetch("toy")[0].read_bytes() == CONTENT
    assert [path for path, _ in server.requests] == ["/copy/toy/file.bin", "/toy/file.bin"]


def test_offline_says_what_is_missing_and_the_three_ways_to_get_it(server, toy, cache):
    with pytest.raises(DataError) as error:
        load("toy", offline=True)
    assert str(error.value) == (
        "no good copy of toy/file.bin for 'toy' on this machine, and the network is off: "
        "run `gcnii data fetch toy` with a network, set GCNII_MIRROR to a folder that has it, "
        f"or copy it to {cache / 'toy/file.bin'}"
    )
    assert server.requests == []


@pytest.mark.parametrize(("value", "works"), [("1", False), ("0", True), ("", True)])
def test_the_environment_can_turn_the_network_off(toy, monkeypatch, value, works):
    monkeypatch.setenv("GCNII_OFFLINE", value)
    if works:
        assert fetch("toy")
    else:
        with pytest.raises(DataError, match="the network is off"):
            fetch("toy")


def test_a_cache_that_cannot_be_written_is_named(toy, monkeypatch, tmp_path):
    (tmp_path / "taken").write_text("a file where the cache should be")
    monkeypatch.setenv("GCNII_DATA", str(tmp_path / "taken"))
    with pytest.raises(
        DataError, match=r"cannot write .*file\.bin \(Not a directory\); set GCNII_DATA to a wri"
    ):
        fetch("toy")


def test_without_a_setting_the_cache_is_the_users(monkeypatch):
    from gcnii.data.download import cache_folder

    monkeypatch.delenv("GCNII_DATA", raising=False)
    assert cache_folder().name == "gcnii"


def test_a_bar_is_drawn_only_for_a_terminal(toy, monkeypatch, capsys):
    fetch("toy")[0].unlink()
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    fetch("toy")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "file.bin" in captured.err


SCRIPT = """
from gcnii.data import CATALOG, fetch
from gcnii.data.catalog import Entry, File
file = File("toy/file.bin", "{url}", "{digest}")
texts = dict.fromkeys(("title", "licence", "source"), "")
CATALOG["toy"] = Entry(name="toy", read=print, counts=None, files=(file,), **texts)
fetch("toy")
"""


def test_two_processes_can_fetch_at_once(server, toy, cache):
    both_have_asked = threading.Barrier(2, timeout=PATIENCE)
    server.answer = lambda handler: both_have_asked.wait() < 0  # then both are served at once
    (file,) = toy.files
    script = SCRIPT.format(url=file.url, digest=file.digest)
    both = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(2)]
    assert [process.wait(timeout=PATIENCE) for process in both] == [0, 0]
    assert leftovers(cache) == ["file.bin"]
    assert fetch("toy", offline=True)[0].read_bytes() == CONTENT
