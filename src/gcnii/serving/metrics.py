"""What is counted of requests, in the text format of Prometheus."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Counts of one server; the thread of the event loop alone changes them."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.buckets: Counter[tuple[str, float]] = Counter()
        self.reloads: Counter[str] = Counter()
        self.in_flight = 0

    def answered(self, path: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self.requests[path, status] += 1
        self.seconds[path] += seconds
        self.buckets[path, next((one for one in BUCKETS if seconds <= one), float("inf"))] += 1

    def text(self, nodes: int) -> str:
        """All of it; `nodes` are those of the graph that is served."""
        return "\n".join([*self._lines(nodes), ""])

    def _lines(self, nodes: int) -> Iterator[str]:
        yield from _head("requests_total", "counter", "Requests that were answered.")
        for (path, status), count in sorted(self.requests.items()):
            yield f'gcnii_requests_total{{path="{path}",status="{status}"}} {count}'
        yield from _head("request_seconds", "histogram", "Time until the answer was sent.")
        for path, total in sorted(self.seconds.items()):
            count = 0
            for bound in (*BUCKETS, float("inf")):
                count += self.buckets[path, bound]
                le = "+Inf" if bound == float("inf") else f"{bound:g}"
                yield f'gcnii_request_seconds_bucket{{path="{path}",le="{le}"}} {count}'
            yield f'gcnii_request_seconds_sum{{path="{path}"}} {total:.6f}'
            yield f'gcnii_request_seconds_count{{path="{path}"}} {count}'
        yield from _head("requests_in_flight", "gauge", "Requests that are being answered.")
        yield f"gcnii_requests_in_flight {self.in_flight}"
        yield from _head("nodes", "gauge", "Nodes of the graph that is served.")
        yield f"gcnii_nodes {nodes}"
        yield from _head("reloads_total", "counter", "Bundles that were loaded anew, or failed to.")
        for result in ("done", "failed"):
            yield f'gcnii_reloads_total{{result="{result}"}} {self.reloads[result]}'


def _head(name: str, kind: str, text: str) -> Iterator[str]:
    yield f"# HELP gcnii_{name} {text}"
    yield f"# TYPE gcnii_{name} {kind}"
