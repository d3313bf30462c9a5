"""Print our files whose functions run in a command, once its words are parsed.

    python running_files.py train cora --epochs 2

Every call of a function is traced (sys.setprofile) from the call of the command's own function on;
bodies of modules and classes are not functions and do not count.
"""

import sys
import threading
from pathlib import Path

import gcnii
from gcnii.cli import main

ROOT = str(Path(gcnii.__file__).parent)
FUNCTION = 0x2  # CO_NEWLOCALS: set for functions, not for bodies of modules and classes


def trace(command, found):
    """A profiler that adds files to `found` once the function of this command was called."""

    def see(frame, event, arg):
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(ROOT) or not code.co_flags & FUNCTION:
            return
        path = code.co_filename.removeprefix(f"{ROOT}/")
        if found or (path == f"cli/{command}.py" and code.co_name == command):
            found.add(path)

    return see


if __name__ == "__main__":
    found = set()
    profiler = trace(sys.argv[1], found)
    threading.setprofile(profiler)
    sys.setprofile(profiler)
    main()
    sys.setprofile(None)
    print(*sorted(found), sep="\n", file=sys.stderr)
