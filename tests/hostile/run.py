"""Run hostile cases and print a table of them.

python tests/hostile/run.py --long                      all kinds, thousands of cases
python tests/hostile/run.py --kind folders --case 17    one case again, with its traceback
"""

import argparse
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from hostile.commands import COMMANDS
from hostile.documents import Documents, Studies
from hostile.folders import Folders
from hostile.graph_files import FORMATS
from hostile.judging import Kind, Skipped, Wrong
from hostile.servers import Servers
from hostile.trainings import Bundles, Checkpoints

ALL = (Folders, *FORMATS, Bundles, Checkpoints, Documents, Studies, Servers, *COMMANDS)
KINDS: dict[str, type[Kind]] = {kind.name: kind for kind in ALL}
SHOWN = 5  # failures of each kind


@dataclass
class Tally:
    """The cases of one kind: how many, how long, and the failures by case number."""

    kind: str
    tried: int = 0
    seconds: float = 0.0
    skipped: str = ""
    failures: dict[int, str] = field(default_factory=dict)


def run_kind(name: str, cases: Sequence[int], *, raising: bool = False) -> Tally:
    """Run these cases of a kind; `raising`: let the first error through."""
    tally, start = Tally(name), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        home = Path(folder)
        (home / "shared").mkdir()
        try:
            kind = KINDS[name](home / "shared")
        except Skipped as reason:
            tally.skipped = str(reason)
            return tally
        try:
            for case in cases:
                tally.tried += 1
                own = home / str(case)
                own.mkdir()
                try:
                    kind.attempt(Random(f"{name} {case}"), own)
                except (Exception, SystemExit) as error:
                    if raising:
                        raise
                    tally.failures[case] = _told(error)
        finally:
            kind.close()
    tally.seconds = time.monotonic() - start
    return tally


def _told(error: BaseException) -> str:
    """The words of Wrong; of any other error, where it was raised too."""
    if isinstance(error, Wrong):
        return str(error)
    where = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(where.filename).name}:{where.lineno}"
    return f"{type(error).__name__} at {place}: {str(error)[:300]}"


def report(tallies: Sequence[Tally]) -> Iterator[str]:
    """The table, and the first failures with the command that repeats them."""
    yield f"{'kind':14} {'tried':>6} {'answered':>9} {'not':>5} {'seconds':>8}"
    for tally in tallies:
        bad = len(tally.failures)
        counts = f"{tally.tried:6} {tally.tried - bad:9} {bad:5} {tally.seconds:8.1f}"
        yield f"{tally.kind:14} {(tally.skipped and f'skipped: {tally.skipped}') or counts}"
    for tally in tallies:
        for case, told in list(tally.failures.items())[:SHOWN]:
            yield f"\npython tests/hostile/run.py --kind {tally.kind} --case {case}\n    {told}"


def main() -> int:
    """Run what the words of the command ask for; 1 if a case was not answered properly."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--long", action="store_true", help="thousands of cases, not hundreds")
    parser.add_argument("--seed", type=int, default=0, help="the first case")
    parser.add_argument("--kind", choices=KINDS, action="append", help="this kind alone")
    parser.add_argument("--case", type=int, help="this case alone, with its traceback")
    given = parser.parse_args()
    tallies = []
    for name in given.kind or KINDS:
        count = KINDS[name].long if given.long else KINDS[name].quick
        cases = range(given.seed, given.seed + count) if given.case is None else [given.case]
        tallies.append(run_kind(name, cases, raising=given.case is not None))
        print(f"{name}: {tallies[-1].tried} cases", file=sys.stderr)
    print("\n".join(report(tallies)))
    return int(any(tally.failures for tally in tallies))


if __name__ == "__main__":
    sys.exit(main())
