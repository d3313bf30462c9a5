"""A server can neither hold a download up, nor fill the disk, nor make us print a password."""

import hashlib
import io
import os
import re
import sys
import time
import zipfile
from base64 import b64encode

import pytest
from support import knobs
from support.local_server import CONTENT, add
from support.waiting import wait_until

from gcnii.data import CATALOG, download, fetch
from gcnii.data.catalog import File
from gcnii.errors import DataError

MIB = 1 << 20


def headers(handler, *lines, code=200):
    """Send the head of an answer as it stands; http.server would mend it."""
    words = "".join(f"{line}\r\n" for line in (f"HTTP/1.1 {code} OK", *lines, ""))
    handler.wfile.write(words.encode())
    return True


def hung_up(write, times):
    """Write again and again; whether the other side hung up before the last time."""
    try:
        for _ in range(times):
            write()
    except OSError:
        return True
    return False


@pytest.fixture
def impatient(monkeypatch):
    """The same limits of time, but a hundred times as short; and one attempt."""
    monkeypatch.setattr(download, "WINDOW", 0.3)
    monkeypatch.setattr(knobs.ATTEMPTS, 1)


def drip(handler):
    handler.wfile.write(b"1")
    handler.wfile.flush()
    time.sleep(0.02)


def test_a_server_that_drips_is_given_up_on(server, toy, impatient):
    stopped = []

    def answer(handler):
        headers(handler, "Content-Length: 262144")
        stopped.append(hung_up(lambda: drip(handler), 500))
        return True

    server.answer = answer
    with pytest.raises(
        DataError, match=r"in 1 attempts \(slower than 1,000 bytes per second\); check the network"
    ):
        fetch("toy")
    assert wait_until(lambda: stopped) == [True]


def test_a_slow_server_that_is_fast_enough_is_waited_for(server, toy, impatient, monkeypatch):
    monkeypatch.setattr(download, "WINDOW", 0.7)  # on a busy machine it may pause for some of it

    def answer(handler):
        headers(handler, f"Content-Length: {len(CONTENT)}")
        for start in range(0, len(CONTENT), len(CONTENT) // 8):
            handler.wfile.write(CONTENT[start : start + len(CONTENT) // 8])
            time.sleep(0.1)
        return True

    server.answer = answer
    assert fetch("toy")[0].read_bytes() == CONTENT


def test_a_body_that_never_ends_is_cut_at_the_size_in_the_catalog(server, cache, monkeypatch):
    digest = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"
    file = File("toy/file.bin", f"{server.address}/toy", digest, size=len(CONTENT))
    add(monkeypatch, "toy", file)
    server.answer = lambda handler: (
        headers(handler) and hung_up(lambda: handler.wfile.write(bytes(MIB)), 1000)
    )
    sentence = r"/toy has more than 262,144 bytes, the most expected; try again, or set GCNII_MIRR"
    with pytest.raises(DataError, match=sentence):
        fetch("toy")
    assert len(server.requests) == 1
    assert not any(path.is_file() for path in cache.rglob("*"))


def test_a_body_of_unknown_size_has_a_limit_too(server, toy, monkeypatch):
    monkeypatch.setattr(download, "LARGEST", 3 * MIB)
    server.answer = lambda handler: (
        headers(handler) and hung_up(lambda: handler.wfile.write(bytes(MIB)), 1000)
    )
    with pytest.raises(DataError, match="has more than 3,145,728 bytes"):
        fetch("toy")


def test_a_length_beyond_the_limit_is_refused_before_the_first_byte(server, toy):
    server.answer = lambda handler: headers(handler, "Content-Length: 999999999999")
    with pytest.raises(DataError, match="has more than 1,073,741,824 bytes"):
        fetch("toy")


@pytest.mark.parametrize("length", ["abc", "-5", "1e3", "", "9" * 5000])
def test_a_length_that_is_not_a_number_is_ignored(length, server, toy):
    server.answer = lambda handler: (
        headers(handler, f"Content-Length: {length}") and handler.wfile.write(CONTENT)
    )
    assert fetch("toy")[0].read_bytes() == CONTENT


def test_a_length_that_is_too_small_gives_another_file_which_is_refused(server, toy):
    server.answer = lambda handler: (
        headers(handler, "Content-Length: 5") and handler.wfile.write(CONTENT)
    )
    with pytest.raises(DataError, match="is not the file in the catalog: expected sha256:"):
        fetch("toy")


def test_a_server_that_always_closes_early_is_given_up_on(server, toy):
    server.answer = lambda handler: (
        headers(handler, "Transfer-Encoding: chunked")
        and (handler.wfile.write(b"ffff\r\nonly this"))
    )
    with pytest.raises(DataError, match=r"in 4 attempts \(IncompleteRead"):
        fetch("toy")


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("file:///etc/passwd", r"HTTP 302 .* 'file:///etc/passwd' is not allowed\); set GCNII_"),
        ("ftp://127.0.0.1/x", r", which redirects to ftp://127.0.0.1/x; set GCNII_MIRROR to a fol"),
        ("http://[::1", r"file.bin \(Invalid IPv6 URL\); set GCNII_MIRROR to a folder or address"),
        ("/toy/file.bin", r"HTTP 302 .*infinite loop.*; set GCNII_MIRROR to a folder"),
    ],
)
def test_a_redirection_to_anything_but_the_web_is_refused(target, sentence, server, toy):
    server.answer = lambda handler: headers(handler, f"Location: {target}", code=302)
    with pytest.raises(DataError, match=f"could not download http://127.0.0.1:.*{sentence}"):
        fetch("toy")


def test_the_body_of_a_redirection_is_not_read(server, toy):
    def answer(handler):
        if handler.path == "/toy/file.bin":
            headers(handler, "Location: /elsewhere", code=302)
            hung_up(lambda: handler.wfile.write(bytes(MIB)), 1000)
        return handler.path == "/toy/file.bin"

    server.answer, server.files["/elsewhere"] = answer, CONTENT
    assert fetch("toy")[0].read_bytes() == CONTENT


@pytest.mark.parametrize(
    "mirror",
    [
        "http://[::1",
        "http://",
        "http:///toy",
        "https://host:abc",
        "https://host:99999",
        "http://a host/",
        "http://höst/",
        "http://host/\x1b[31m",
    ],
)
def test_a_mirror_that_is_not_an_address_is_refused_at_once(mirror, server, toy, monkeypatch):
    monkeypatch.setenv("GCNII_MIRROR", mirror)
    with pytest.raises(DataError) as error:
        fetch("toy")
    assert str(error.value) == (
        f"GCNII_MIRROR is not a valid http(s) address, got {mirror!r}; "
        "write it as https://host/path, with other characters percent-encoded"
    )
    assert server.requests == []


@pytest.mark.parametrize(
    "mirror",
    [
        "http://user:secret@127.0.0.1:9/copy",
        "http://user:sec@ret@127.0.0.1:9/copy",
        "https://user:secret@[::1",
        "https://user:se/secret@host/copy",
        "ftp://user:secret@host/copy",
        "user:secret@host/copy",
    ],
)
def test_a_password_in_the_address_of_a_mirror_is_never_printed(mirror, server, toy, monkeypatch):
    monkeypatch.setattr(knobs.ATTEMPTS, 1)
    monkeypatch.setenv("GCNII_MIRROR", mirror)
    with pytest.raises(DataError) as error:
        fetch("toy")
    assert "ret" not in str(error.value)
    assert "user" not in str(error.value)


def test_a_password_in_the_address_of_a_mirror_is_sent_but_not_to_others(server, toy, monkeypatch):
    heard = []

    def answer(handler):
        heard.append((handler.path, handler.headers.get("Authorization")))
        if handler.path == "/copy/toy/file.bin":
            return headers(handler, "Location: /elsewhere", code=302)

    server.answer, server.files["/elsewhere"] = answer, CONTENT
    monkeypatch.setenv("GCNII_MIRROR", f"http://user:se%40cret@{server.address[7:]}/copy")
    assert fetch("toy")[0].read_bytes() == CONTENT
    word = b64encode(b"user:se@cret").decode()
    assert heard == [("/copy/toy/file.bin", f"Basic {word}"), ("/elsewhere", None)]


def test_a_wrong_file_of_a_mirror_with_a_password_does_not_show_it(server, toy, monkeypatch):
    server.files["/copy/toy/file.bin"] = b"wrong"
    monkeypatch.setenv("GCNII_MIRROR", f"http://user:secret@{server.address[7:]}/copy")
    with pytest.raises(DataError, match=f"^{server.address}/copy/toy/file.bin is not the file in"):
        fetch("toy")


def test_a_member_of_an_archive_that_would_fill_the_disk_is_refused(server, cache, monkeypatch):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("deep/bomb.npy", bytes(8 * MIB))
    server.files["/all.zip"] = packed.getvalue()
    add(monkeypatch, "bomb", File("bomb.npy", f"{server.address}/all.zip", "git:0", archived=True))
    monkeypatch.setattr(download, "LARGEST", 4 * MIB)
    with pytest.raises(DataError, match=r"bomb.npy in http://.*/all.zip has more than 4,194,304 b"):
        fetch("bomb")
    assert not any(path.is_file() for path in cache.rglob("*"))


def test_the_catalog_knows_the_size_of_every_file_but_those_of_ppi():
    sizes = {name: [file.size for file in entry.files] for name, entry in CATALOG.items()}
    assert {name for name, found in sizes.items() if None in found} == {"ppi"}
    assert sum(sizes["cora"]) == 572_444


def test_in_a_terminal_a_bar_shows_the_speed(toy, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "120")
    fetch("toy")
    assert re.search(r"file\.bin .*262\.1/262\.1 kB.*[\d.]+ [kMG]?B/s", capsys.readouterr().err)


def test_a_pipe_in_the_place_of_a_mirrors_file_is_not_read(toy, cache, monkeypatch, tmp_path):
    (tmp_path / "mirror/toy").mkdir(parents=True)
    os.mkfifo(tmp_path / "mirror/toy/file.bin")
    monkeypatch.setenv("GCNII_MIRROR", str(tmp_path / "mirror"))
    assert fetch("toy") == [cache / "toy/file.bin"]
