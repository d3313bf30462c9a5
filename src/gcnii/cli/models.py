"""gcnii models: list the models."""

from __future__ import annotations

import inspect
import json as json_format

from rich.table import Table

from gcnii.cli.options import Json
from gcnii.nn import MODELS
from gcnii.report.console import table_console
from gcnii.train.plan import model_defaults


def models(*, json: Json = False) -> None:
    """List the models: name, what it is, settings with their defaults."""
    rows = [{"name": name, "about": _about(name), "settings": model_defaults(name)} for name in MODELS]
    if json:
        print(json_format.dumps(rows, indent=1, ensure_ascii=False))
        return
    table = Table("model", "about", "settings", box=None, header_style="bold")
    for name in MODELS:
        settings = ", ".join(f"{key} {value}" for key, value in model_defaults(name).items())
        table.add_row(name, _about(name), settings)
    table_console().print(table)


def _about(name: str) -> str:
    """The first sentence of the model's docstring."""
    return (inspect.getdoc(MODELS[name]) or "").split("\n")[0].split(";")[0].rstrip(".")
