"""What the catalog says of a data set."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from gcnii.graph import Graph

Files = Mapping[str, Path]  # what a reader is given: the bare name of each file, and where it lies


@dataclass(frozen=True)
class File:
    """One upstream file.

    path      where it lies below the cache folder and below a mirror
    url       where it comes from: the file itself, or, if `archived`, the zip archive that holds it
    digest    `sha256:…`, or `git:…` (the SHA-1 of a git blob) where only that is known
    """

    path: str
    url: str
    digest: str
    archived: bool = False

    @property
    def name(self) -> str:
        """The bare file name."""
        return PurePosixPath(self.path).name


@dataclass(frozen=True)
class Counts:
    """Nodes, edges (as `Graph.m` counts them; None: not known), features, classes."""

    nodes: int
    edges: int | None
    features: int
    classes: int


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A data set: where it comes from, how it is read, and what is in it.

    read      Files → Graph; or, for a generated set (no `files`), its parameters → Graph
    counts    true of the files, not of the paper's Table 1; of a generated set, at its defaults
    notes     known faults, one sentence each
    neighbourhoods  geometry → the file of neighbours that Geom-GCN published; `load` does without
                    them
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
        """The names `load` accepts beside this set's: those of a generated set's `read`, else none."""
        return () if self.files else tuple(inspect.signature(self.read).parameters)
