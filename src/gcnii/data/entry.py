"""Entry: what the catalog knows about a data set."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from gcnii.graph import Graph

Files = Mapping[str, Path]  # what a reader gets: file name → path


@dataclass(frozen=True)
class File:
    """One upstream file.

    path      relative to the cache folder and to a mirror
    url       address of the file or, if `archived`, of the zip archive that contains it
    digest    `sha256:…`, or `git:…` (the SHA-1 of a git blob) if only that is known
    size      in bytes, if it is known
    """

    path: str
    url: str
    digest: str
    archived: bool = False
    size: int | None = None

    @property
    def name(self) -> str:
        """The file name without its folders."""
        return PurePosixPath(self.path).name


@dataclass(frozen=True)
class Counts:
    """Numbers of nodes, edges (as in `Graph.m`; None if unknown), features and classes."""

    nodes: int
    edges: int | None
    features: int
    classes: int


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A data set: where it comes from, how it is read, and what is in it.

    read      Files → Graph; for a generated graph (no `files`), parameters → Graph
    counts    of the files, which may differ from the paper's Table 1; of a generated graph with
              its default parameters
    notes     known faults, one sentence each
    neighbourhoods  geometry → the file of neighbours that Geom-GCN published; not needed by `load`
    """

    name: str
    title: str
    read: Callable[..., Graph]
    counts: Counts
    licence: str
    source: str
    files: tuple[File, ...] = ()
    notes: tuple[str, ...] = ()
    neighbourhoods: Mapping[str, File] = field(default_factory=dict)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters that `load` accepts: those of `read` for a generated graph, else none."""
        return () if self.files else tuple(inspect.signature(self.read).parameters)
