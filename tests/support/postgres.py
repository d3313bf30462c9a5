"""A PostgreSQL server for the tests; `python tests/support/postgres.py` installs one by apt.

A cluster of its own in a temporary folder, on a free port of this machine; nothing else is touched.
"""

import glob
import os
import pwd
import shutil
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

USER = "postgres"  # the server refuses to run as root


def find():
    """The folder with the programs of the newest PostgreSQL here; None if there is none."""
    places = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=_release, reverse=True)
    on_path = shutil.which("initdb")
    places += [str(Path(on_path).resolve().parent)] if on_path else []
    return next((Path(one) for one in places if (Path(one) / "postgres").exists()), None)


def _release(place):
    name = Path(place).parent.name
    return int(name) if name.isdecimal() else 0


def owner():
    """The user that a server is run as: this one, but for root; None if root has no other."""
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid()).pw_name
    try:
        return pwd.getpwnam(USER).pw_name
    except KeyError:
        return None


@contextmanager
def server(folder):
    """Within, a server with an empty database; its address.  `folder` must be the owner's to reach.

    Any password is accepted, because all connections are trusted.
    """
    programs, user = find(), owner()
    data = Path(folder) / "cluster"
    data.mkdir()
    if os.geteuid() == 0:
        shutil.chown(folder, user)
        shutil.chown(data, user)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    _run(
        user, programs / "initdb", "-D", data, "-U", USER, "-A", "trust", "--no-sync", "-E", "UTF8"
    )
    options = f"-h 127.0.0.1 -p {port} -k {folder} -c fsync=off"
    control = (programs / "pg_ctl", "-D", data, "-w")
    _run(user, *control, "-l", data / "log", "-o", options, "start")
    try:
        yield f"postgresql+psycopg://{USER}:s3cret@127.0.0.1:{port}/postgres"
    finally:
        _run(user, *control, "-m", "immediate", "stop")


def _run(user, *words):
    how = {"user": user} if os.geteuid() == 0 else {}
    done = subprocess.run(
        list(map(str, words)),
        cwd="/",
        env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        **how,
    )
    assert done.returncode == 0, done.stderr


def install():
    """By apt, where there is one and this is root."""
    how = {"check": True, "stdout": subprocess.DEVNULL, "timeout": 600}
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "update", "-q"], env=environment, **how)
    words = ["apt-get", "install", "-y", "-q", "--no-install-recommends", "postgresql"]
    subprocess.run(words, env=environment, **how)


if __name__ == "__main__":
    if find() or os.geteuid() != 0 or not shutil.which("apt-get"):
        sys.exit()
    try:
        install()
    # the tests decide whether they can do without
    except (OSError, subprocess.SubprocessError) as error:
        print(f"no PostgreSQL from apt: {error}", file=sys.stderr)
