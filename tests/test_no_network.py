"""The tests run on a machine without a network: none reaches another machine unnoticed."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from support.no_network import sitecustomize

OTHER = "192.0.2.1"  # an address kept for documentation
CONNECT = f"import socket; socket.create_connection(('{OTHER}', 80))"


def noted():
    """The hosts that were noted; this test expected them, so they are crossed out."""
    notes = Path(os.environ[sitecustomize.NOTES])
    hosts = notes.read_text().split()
    notes.write_text("")
    return set(hosts)


@pytest.mark.parametrize("host", [OTHER, "data.example"])
def test_another_machine_is_out_of_reach_and_the_attempt_is_noted(host):
    with pytest.raises(OSError, match=f"tests may not connect to {host}"):
        socket.create_connection((host, 80))
    assert noted() == {host}


def test_a_process_that_a_test_starts_is_held_to_it():
    done = subprocess.run([sys.executable, "-c", CONNECT], capture_output=True, text=True)
    assert f"tests may not connect to {OTHER}" in done.stderr
    assert noted() == {OTHER}


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1", b"127.0.0.1", None])
def test_this_machine_is_in_reach(host):
    assert sitecustomize.is_here(host)
