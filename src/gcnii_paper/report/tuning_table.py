"""What `gcnii tune` reached: studies in results/tuning as a table for docs/tuning.md."""

from __future__ import annotations

from pathlib import Path

from gcnii.files import NOTHING, Document, read_document
from gcnii.targets.scores import percent

_TESTED = {"test_mean": (float, NOTHING), "test_std": (float, NOTHING), "test": list}
SHAPE = {
    "graph": str,
    "measured": str,
    "tried": int,
    "winner": {"model": str, "val": float},
    "final": _TESTED,
    "baselines": {str: _TESTED},
    "seconds": float,
    "command": str,
    "device": str,
}
BASES = ("mlp", "gcn")
HEADS = ("graph", "metric", "settings tried", "winner", "val", "test", *BASES, "seconds")


def read_studies(folder: Path) -> list[Document]:
    """The studies in a folder, in the order of their names."""
    return [read_document(path, SHAPE, "study", dict) for path in sorted(folder.glob("*.json"))]


def tuning_table(studies: list[Document]) -> str:
    """One row for each study, and the command behind each."""
    lines = [f"|{'|'.join(HEADS)}|", f"|{'---|' * len(HEADS)}"]
    lines += [f"|{'|'.join(_cells(study))}|" for study in studies]
    devices = ", ".join(sorted({study["device"] for study in studies}))
    lines += ["", f"On {devices}; test scores are mean ± deviation (runs). The commands:", ""]
    lines += [f"    {study['command']}" for study in studies]
    return "\n".join(lines) + "\n"


def _cells(study: Document) -> list[str]:
    final, others = study["final"], study["baselines"]
    spread = f"{percent(final['test_mean'])} ± {percent(final['test_std'])} ({len(final['test'])})"
    baselines = (percent(others[name]["test_mean"]) if name in others else "–" for name in BASES)
    won = study["winner"]
    about = [study["graph"], study["measured"], str(study["tried"]), won["model"]]
    return [*about, percent(won["val"]), spread, *baselines, f"{study['seconds']:.0f}"]
