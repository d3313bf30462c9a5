"""Tests need no network: connections to other machines are refused, and noted for the report.

Python imports this file by its name in every process whose PYTHONPATH has its folder, so commands
that a test starts are held to it, too.
"""

import errno
import os
import sys
from ipaddress import ip_address

NOTES = "GCNII_TEST_CONNECTIONS"  # the file in which attempts are noted, one line each
EVENTS = {"socket.connect": 1, "socket.getaddrinfo": 0}  # which argument is the address


def refuse_other_machines(event: str, arguments: tuple) -> None:
    """An audit hook: raises OSError, as a machine without a network does."""
    if event not in EVENTS or NOTES not in os.environ:
        return
    address = arguments[EVENTS[event]]
    host = address[0] if isinstance(address, tuple) else address if "get" in event else None
    if not is_here(host):
        with open(os.environ[NOTES], "a", encoding="utf-8") as notes:
            notes.write(f"{host}\n")
        raise OSError(errno.ENETUNREACH, f"tests may not connect to {host}")


def is_here(host: str | bytes | None) -> bool:
    """Whether it names this machine; a path of a UNIX socket does."""
    name = host.decode() if isinstance(host, bytes) else host or "localhost"
    try:
        return ip_address(name).is_loopback or ip_address(name).is_unspecified
    except ValueError:
        return name in ("localhost", os.uname().nodename)


sys.addaudithook(refuse_other_machines)
