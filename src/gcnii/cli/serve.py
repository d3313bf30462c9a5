"""gcnii serve: answer requests over HTTP with a trained model."""

from __future__ import annotations

from importlib.util import find_spec
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from gcnii.cli.options import SWITCH, Device, Offline, Quiet
from gcnii.cli.predict import Asked, Bundle
from gcnii.errors import InputError
from gcnii.files import file_sha256

if TYPE_CHECKING:
    from gcnii.serving.served import Served


def serve(
    bundle: Bundle,
    /,
    *,
    graph: str | None = None,
    host: str = "127.0.0.1",
    port: int = 8000,
    token_file: Path | None = None,
    coverage: float | None = None,
    radius: int = 2,
    most_body: int = 10_000_000,
    most_rows: int = 10_000,
    seconds: float = 30.0,
    watch: Annotated[bool, SWITCH] = False,
    log: Annotated[bool, SWITCH] = False,
    device: Device = "auto",
    quiet: Quiet = False,
    offline: Offline = False,
) -> None:
    """Serve a trained model and its graph over HTTP until it is stopped.

    Parameters
    ----------
    graph
        The graph; default: where it was when the model was trained.
    host
        Address to listen on; any but this machine's own needs a token.
    port
        Port to listen on; 0: a free one.
    token_file
        A file with the bearer token that requests must carry.
    coverage
        Coverage of prediction sets; default: 0.9, where the model can have sets.
    radius
        Hops around a new node within which states are computed again.
    most_body
        Largest size of a request, in bytes.
    most_rows
        Largest number of rows in a request.
    seconds
        Longest time for an answer, in seconds.
    watch
        Load the bundle again when it changes, as SIGHUP does.
    log
        Write a line for each request to stderr.
    """
    missing = [name for name in ("fastapi", "httptools", "uvicorn") if find_spec(name) is None]
    if missing:
        raise InputError(f"serving needs {', '.join(missing)}: pip install 'gcnii[serve]'")
    from gcnii.serving.records import Limits
    from gcnii.serving.server import Place, read_token, run

    if min(most_body, most_rows) < 1 or not 0 < seconds < inf:
        raise InputError("--most-body, --most-rows and --seconds must be finite and above 0")
    token = None if token_file is None else read_token(token_file)
    place = Place(host, port, token, bundle if watch else None, log)
    asked = Asked(device=device, quiet=quiet, offline=offline)

    def load() -> Served:
        return load_served(asked, bundle, graph, coverage, radius)

    run(load, place, Limits(most_body, most_rows, seconds))


def load_served(
    asked: Asked, bundle: Path, graph: str | None, coverage: float | None, radius: int
) -> Served:
    """The bundle with its graph, and all answers for it; named after what the bundle holds."""
    from gcnii.serving.served import Served

    result = asked.open(bundle)
    name = file_sha256(bundle / "run.json")[:12]
    result, data = asked.load(result, bundle, graph)
    about = {"device": asked.device, "coverage": coverage, "radius": radius}
    return Served.of(result, data, name, **about)  # type: ignore[arg-type]
