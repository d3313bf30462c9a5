"""A page whose every text comes from a file that wants to write HTML."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

from gcnii_paper.report.figures import figures
from gcnii_paper.report.page import DoctorVisit, page
from support.made_up_cells import around, measured

DOCTOR = Path(__file__).parents[2] / "results" / "doctor" / "cora.json"
NAMES = (
    '"><img src=x onerror=alert(1)>',
    "</text></svg><script>alert(2)</script>",
    "'-alert(3)-' onfocus=alert(3) autofocus style=color:red",
    "--></style><style>main{display:none}</style>",
    'a\\b \\1 \\g<0> 100% $x$ $\\frac$ #000000 id="url(#',
)


def hostile_visit(name):
    """A document of the doctor with this name in the place of every text."""
    found = json.loads(DOCTOR.read_text("utf-8"))
    checkup = found["checkups"][0] | {"model": name, "diagnosis": {"text": name}}
    for row in checkup["before"] + checkup["after"]:
        row["name"] = name
    words = {"graph": name, "command": name, "comparison": [name], "checkups": [checkup]}
    return DoctorVisit({"epochs": found["epochs"]} | words)


@cache
def hostile_page():
    """One visit per name, and a cell with the names in its texts."""
    texts = dict.fromkeys(("graph", "model", "command", "note"), NAMES[0])
    run = {"device": NAMES[1], "commit": NAMES[2], "versions": {NAMES[0]: NAMES[3]}}
    cell = measured("table2/gcnii/cora", around(85), **texts, settings={NAMES[1]: NAMES[2]})
    cell = replace(cell, runs=tuple(replace(one, **run) for one in cell.runs))
    return page([cell], figures([]), map(hostile_visit, NAMES))
