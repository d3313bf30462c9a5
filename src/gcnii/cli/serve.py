"""gcnii serve: answer requests over HTTP with a trained model."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from gcnii.cli.options import Device, Offline, Quiet, switch
from gcnii.cli.predict import Asked, Bundle
from gcnii.errors import InputError
from gcnii.files import file_sha256

if TYPE_CHECKING:
    from gcnii.serving.served import Served

WordsOfGraph = Annotated[
    str | None, Parameter(help="The graph; default: where it was when the model was trained.")
]
Host = Annotated[str, Parameter(help="Where to listen; beyond this machine, a token is needed.")]
Port = Annotated[int, Parameter(help="On which port; 0: on one that is free.")]
TokenFile = Annotated[
    Path | None, Parameter(help="A file with the token that requests must carry as Bearer.")
]
Coverage = Annotated[
    float | None,
    Parameter(help="Of prediction sets; default: 0.9, where the model can have sets."),
]
Radius = Annotated[
    int, Parameter(help="Hops around a new node within which states are computed anew.")
]
MostBody = Annotated[int, Parameter(help="Bytes of a request at most.")]
MostRows = Annotated[int, Parameter(help="Rows of a request at most.")]
Seconds = Annotated[float, Parameter(help="Time for an answer at most.")]
Watch = Annotated[bool, switch("Load the bundle anew when it changes, as SIGHUP does.")]
Log = Annotated[bool, switch("Write a line for each request to stderr.")]


def serve(
    bundle: Bundle,
    /,
    *,
    graph: WordsOfGraph = None,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    token_file: TokenFile = None,
    coverage: Coverage = None,
    radius: Radius = 2,
    most_body: MostBody = 10_000_000,
    most_rows: MostRows = 10_000,
    seconds: Seconds = 30.0,
    watch: Watch = False,
    log: Log = False,
    device: Device = "auto",
    quiet: Quiet = False,
    offline: Offline = False,
) -> None:
    """Serve a trained model and its graph over HTTP until it is stopped."""
    missing = [name for name in ("fastapi", "httptools", "uvicorn") if find_spec(name) is None]
    if missing:
        raise InputError(f"serving needs {', '.join(missing)}: pip install 'gcnii[serve]'")
    from gcnii.serving.records import Limits
    from gcnii.serving.server import Place, read_token, run

    if min(most_body, most_rows) < 1 or seconds <= 0:
        raise InputError("--most-body, --most-rows and --seconds must be above 0")
    token = None if token_file is None else read_token(token_file)
    place = Place(host, port, token, bundle / "run.json" if watch else None, log)
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
