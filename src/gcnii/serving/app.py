"""The HTTP interface of what is served: routes, their documents, and what a request may be.

What is refused is one sentence, `{"error": …}`; paths and tracebacks stay in the log.
"""

from __future__ import annotations

import asyncio
import json
import sys
import warnings
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Annotated, TypeVar

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from pydantic import (
    BaseModel,
    ConfigDict,
    FailFast,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
)
from pydantic_core import from_json
from starlette.exceptions import HTTPException

from gcnii import __version__
from gcnii.errors import DataError, GcniiError, InputError, one_line
from gcnii.files import Document
from gcnii.serving.metrics import TYPE, Metrics
from gcnii.serving.records import ARROW, Limits, Records, of_arrow, to_arrow
from gcnii.serving.served import NewAnswers, Served

Made = TypeVar("Made")
PAGE = Path(__file__).parent / "templates" / "page.html"
JSON = "application/json"
WAITING = 64  # requests that wait for one worker; more are told to come again
MOST_FIELDS = 20  # of a request: the answer to a million would take long
MOST_LINKS = 100  # in an explanation
NOTES: ContextVar[list[str]] = ContextVar("notes")

Id = Annotated[StrictStr | StrictInt, Field(description="The name of a node, or its number.")]
OneCell = StrictStr | StrictInt | StrictFloat | StrictBool | None
# Records says what is wrong with the first wrong cell; pydantic would tell of a million.
Row = Annotated[dict[str, object], WithJsonSchema(TypeAdapter(dict[str, OneCell]).json_schema())]


class Body(BaseModel):
    """What a request holds: these fields and no others."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Ids(Body):
    """Nodes of the graph."""

    ids: Annotated[list[Id], Field(examples=[["17"]]), FailFast()]
    probabilities: StrictBool = Field(False, description="Give the probability of every class.")


class NewNodes(Body):
    """New nodes and their edges, as rows of tables whose columns are called as in the training."""

    nodes: Annotated[list[Row], FailFast()]
    edges: Annotated[list[Row], FailFast()] = Field(default_factory=list)
    exact: StrictBool = Field(False, description="Compute the whole graph anew, which takes long.")
    probabilities: StrictBool = Field(False, description="Give the probability of every class.")


class Question(Body):
    """Why a node has its label."""

    id: Id
    label: StrictStr | None = Field(None, description="The label to explain, if not its own.")
    against: StrictStr | None = Field(None, description="Another label, to tell apart from it.")
    top: Annotated[StrictInt, Field(ge=1, le=MOST_LINKS)] = 10


class Answer(BaseModel):
    """What is predicted of a node; a field that does not apply is absent."""

    model_config = ConfigDict(extra="allow")
    node: str | int
    label: OneCell = None
    probability: float | None = None
    set: list[str] | None = None
    known: OneCell = None


class Answers(BaseModel):
    """In the order of the question; `model` names what answered all of them."""

    model: str
    answers: list[Answer]


class AnswersOfNew(Answers):
    """`exact`: what a pass over the whole graph would say; else near, by the states around.

    radius  hops within which states were computed anew
    error   of probabilities, as it was measured when the model was loaded
    """

    exact: bool
    radius: int | None
    error: dict[str, float] | None
    notes: list[str]


class Refusal(BaseModel):
    """Why there is no answer, and what to do."""

    error: str


@dataclass(eq=False)
class Service:
    """What the requests of one server share; `served` is replaced as a whole."""

    served: Served
    limits: Limits = field(default_factory=Limits)
    metrics: Metrics = field(default_factory=Metrics)
    waiting: Counter[ThreadPoolExecutor] = field(default_factory=Counter)
    # Explanations and whole graphs take seconds, and nobody else is to wait for them.
    quick: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "new"))
    slow: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "slow"))

    async def work(
        self, worker: ThreadPoolExecutor, call: Callable[[], Made]
    ) -> tuple[Made, list[str]]:
        """What a call in a worker's thread returns, and its notices."""
        if self.waiting[worker] >= WAITING:
            raise Busy(f"{WAITING} requests are waiting already; come again")
        notes, context = list[str](), copy_context()
        context.run(NOTES.set, notes)
        self.waiting[worker] += 1
        task = asyncio.get_running_loop().run_in_executor(worker, context.run, call)
        try:  # what has not begun by then never does; what has is computed in vain
            return await asyncio.wait_for(task, self.limits.seconds), notes
        except TimeoutError:
            raise Busy(f"no answer within {self.limits.seconds:g} s; ask for less") from None
        finally:
            self.waiting[worker] -= 1

    def close(self) -> None:
        """Let nothing begin any more."""
        for worker in (self.quick, self.slow):
            worker.shutdown(wait=False, cancel_futures=True)


class Busy(GcniiError):
    """There is no answer in time."""


def note(message: Warning | str, *_: object) -> None:
    """Keep a notice for the answer that it belongs to; without one, it goes to the log."""
    notes = NOTES.get(None)
    if notes is None:
        print(f"gcnii: {one_line(str(message))}", file=sys.stderr)
    else:
        notes.append(one_line(str(message)))


def keep_notices() -> None:
    """Let `notice` tell the request that is being answered, every time."""
    warnings.simplefilter("always", UserWarning)
    warnings.showwarning = note  # type: ignore[assignment]


Responses = dict[int | str, Document]
REFUSALS: Responses = {
    401: {"model": Refusal, "description": "The token is missing or wrong."},
    408: {"model": Refusal, "description": "The body came too slowly."},
    413: {"model": Refusal, "description": "The body is too large."},
    415: {"model": Refusal, "description": "Neither JSON nor Arrow."},
    421: {"model": Refusal, "description": "The server is not called so."},
    422: {"model": Refusal, "description": "What is wrong with the question."},
    503: {"model": Refusal, "description": "There was no answer in time."},
}


def accepting(body: type[BaseModel], *, arrow: str = "") -> Document:
    """The part of the OpenAPI document about a body; `arrow` says what it is in Arrow."""
    schema = body.model_json_schema(ref_template="#/components/schemas/{model}")
    content: Document = {JSON: {"schema": schema}}
    if arrow:
        binary = {"type": "string", "format": "binary", "description": arrow}
        content[ARROW] = {"schema": binary}
    return {"requestBody": {"required": True, "content": content}}


def create(service: Service) -> FastAPI:
    """The application, without what guards it (`guard.Guard`)."""
    app = FastAPI(
        title="gcnii",
        version=__version__,
        description="Labels of the nodes of a graph, by a trained model.",
        docs_url=None,  # its scripts would come from another server
        redoc_url=None,
        redirect_slashes=False,  # to an address that the client would choose
        responses=REFUSALS,
    )
    for kind in (InputError, HTTPException, Busy):
        app.add_exception_handler(kind, _refused)
    app.add_exception_handler(Exception, _failed)
    _add_answers(app, service)
    _add_about(app, service)
    return app


def _add_answers(app: FastAPI, service: Service) -> None:
    arrow: Responses = {200: {"model": Answers, "content": {ARROW: {}}}}

    @app.post("/predict", responses=arrow, openapi_extra=accepting(Ids, arrow="A column node."))
    async def predict(request: Request) -> Response:
        """Label nodes of the graph: label, probability, set."""
        asked = await _ids(request, service.limits)
        served = service.served
        found = served.answers(asked.ids, every=asked.probabilities)
        return _answers(request, {"model": served.name, "answers": found})

    two = "Two streams, one after the other: nodes, and edges."
    arrow_of_new: Responses = {200: {"model": AnswersOfNew, "content": {ARROW: {}}}}

    @app.post("/predict_new", responses=arrow_of_new, openapi_extra=accepting(NewNodes, arrow=two))
    async def predict_new(request: Request) -> Response:
        """Label nodes that are not in the graph, which stays as it is."""
        nodes, edges, asked = await _new_nodes(request, service.limits)
        served = service.served
        slow = asked.exact or served.near is None

        def answer() -> NewAnswers:
            return served.new(nodes, edges, exact=asked.exact, every=asked.probabilities)

        found, notes = await service.work(service.slow if slow else service.quick, answer)
        about = {"exact": found.exact, "radius": found.radius, "notes": notes}
        error = None if found.exact else served.error
        return _answers(
            request,
            {"model": served.name, "answers": found.answers, **about, "error": error},
        )

    @app.post("/explain", openapi_extra=accepting(Question))
    async def explain(request: Request) -> Response:
        """Why a node has its label: shares of nodes, features and hops, links that matter."""
        asked, served = await _read(request, Question), service.served

        def answer() -> object:
            return served.explanation(asked.id, asked.label, asked.against, asked.top)

        found, notes = await service.work(service.slow, answer)
        return as_json({"model": served.name, "explanation": found, "notes": notes})


def _add_about(app: FastAPI, service: Service) -> None:
    page = PAGE.read_text("utf-8")
    script, style = (page.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0] for tag in PARTS)
    policy = (
        f"default-src 'none'; img-src data:; connect-src 'self'; script-src {_digest(script)}; "
        f"style-src {_digest(style)}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )

    @app.get("/", response_class=HTMLResponse)
    async def index() -> Response:
        """A page to ask for one node."""
        return HTMLResponse(page, headers={"Content-Security-Policy": policy})

    @app.get("/model")
    async def model() -> Response:
        """What is served: the model, its score, classes, and columns."""
        return as_json(service.served.about)

    @app.get("/health")
    async def health() -> Response:
        """Whether it answers."""
        return as_json({"status": "ok"})

    @app.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> Response:
        """Counts of requests, in Prometheus' text format."""
        return Response(service.metrics.text(service.served.graph.n), media_type=TYPE)


PARTS = ("script", "style")


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


async def _ids(request: Request, limits: Limits) -> Ids:
    if _kind(request) != ARROW:
        asked = await _read(request, Ids)
        limits.refuse_many("ids", len(asked.ids))
        return asked
    (columns,) = of_arrow(await request.body(), ["nodes"], limits)
    column = columns.get("node", columns.get("id"))
    if column is None:
        raise InputError("expected a column node with the names of nodes")
    return Ids.model_construct(ids=[_whole(cell) for cell in column], probabilities=False)


def _whole(cell: object) -> str | int:
    if isinstance(cell, str | int) and not isinstance(cell, bool):
        return cell
    raise InputError(f"the name of a node must be text or a whole number, got {cell!r}")


async def _new_nodes(request: Request, limits: Limits) -> tuple[Records, Records, NewNodes]:
    if _kind(request) == ARROW:
        two = of_arrow(await request.body(), ["nodes", "edges"], limits)
        return Records("nodes", two[0]), Records("edges", two[1]), NewNodes(nodes=[])  # type: ignore[call-arg]
    asked = await _read(request, NewNodes)
    nodes = Records.of_rows("nodes", asked.nodes, limits)
    return nodes, Records.of_rows("edges", asked.edges, limits), asked


def _kind(request: Request) -> str:
    """The type of the body, JSON or Arrow."""
    found = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if found not in (JSON, ARROW):
        raise HTTPException(415, f"expected a body of type {JSON} or {ARROW}")
    return found


Asked = TypeVar("Asked", bound=Body)


async def _read(request: Request, kind: type[Asked]) -> Asked:
    """The body as JSON of this shape; InputError says the first thing that is wrong with it."""
    if _kind(request) != JSON:
        raise HTTPException(415, f"expected a body of type {JSON}")
    try:
        document = from_json(await request.body(), allow_inf_nan=False)
        if not isinstance(document, dict) or len(document) > MOST_FIELDS:
            raise InputError("the body must be an object with few fields; see /openapi.json")
        return kind.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place, said = first["loc"], first["msg"]
        if len(place) > 1 and place[-1] in ("str", "int"):
            place, said = place[:-1], "expected text or a whole number"
        where = ".".join(map(str, place)) or "the body"
        raise InputError(f"{where}: {said}; see /openapi.json") from None
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"the body: Invalid JSON: {error}; see /openapi.json") from None


def _answers(request: Request, document: Document) -> Response:
    """As Arrow, where that is what the client accepts; else as JSON."""
    if ARROW not in request.headers.get("accept", ""):
        return as_json(document)
    about = {name: one for name, one in document.items() if name != "answers"}
    heads = {"X-Gcnii": json.dumps(about, ensure_ascii=True)}
    return Response(to_arrow(document["answers"]), media_type=ARROW, headers=heads)


def as_json(
    document: object, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """An answer in ASCII, so that half a surrogate pair, which a name can have, can be sent."""
    return Response(json.dumps(document, allow_nan=False), status, headers, JSON)


async def _refused(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        more = "" if error.status_code == 415 else "; see /openapi.json"
        return as_json({"error": f"{error.detail}{more}"}, error.status_code, error.headers)
    status, said = 503 if isinstance(error, Busy) else 422, str(error)
    if isinstance(error, DataError) and len(error.problems) > 1:
        said = f"{one_line(error.problems[0])} ({len(error.problems) - 1} more)"
    return as_json({"error": said}, status)


async def _failed(request: Request, error: Exception) -> Response:
    return as_json({"error": "the server failed; its log says why"}, 500)
