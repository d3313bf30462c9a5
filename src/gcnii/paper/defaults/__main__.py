"""python -m gcnii.paper.defaults: the measurements, where the command line is not installed.

--out PATH      a folder for NAME.json, or a file *.json for all graphs; it is resumed
--data FOLDER   the development graphs' npz files
--only WORD     graphs with this word in their names
--device NAME   auto, cpu or cuda
--jobs N        processes
--minutes M     from when on no batch is begun
--unpack FILE   measure nothing: add what this file or folder holds to --out
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from gcnii.paper.defaults.measure import measure
from gcnii.paper.defaults.records import Records


def main(words: list[str]) -> None:
    """Measure, or unpack."""
    given = {"--out": "results/defaults"} | dict(zip(words[::2], words[1::2], strict=True))
    records = Records(Path(given.pop("--out")))
    if source := given.pop("--unpack", ""):
        Records(Path(source)).copy_to(records)
        return
    data = given.pop("--data", "")
    measure(
        records,
        word=given.pop("--only", ""),
        data=Path(data) if data else None,
        device=given.pop("--device", "auto"),
        jobs=int(given.pop("--jobs", "1")),
        minutes=float(given.pop("--minutes", "inf")),
        told=partial(print, flush=True),
    )


if __name__ == "__main__":
    main(sys.argv[1:])
