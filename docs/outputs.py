"""`python docs/outputs.py [PAGE…]` runs the code of the manual's pages, and writes what it prints.

Without a page, all that have output blocks are renewed; tests/support/manual.py says what a block
is, and which are run.  A notebook prints when the manual is built.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import indent

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support.manual import FENCE, PAGES, blocks, cut, run  # noqa: E402


def renew(page):
    """Write what the code of a page prints into its output blocks."""
    printed, answers = None, []
    with TemporaryDirectory() as folder:
        for block, answer in run(page, Path(folder).resolve(), slow=True):
            if block.is_output:
                if not printed:
                    raise SystemExit(f"{page}: no code that is run and prints is before {block}")
                answers.append(cut(printed, block.mark))
            elif block.language in ("python", "sh"):
                printed = answer
    text = "\n".join(answers)
    if str(ROOT) in text or str(Path.home()) + "/" in text:
        raise SystemExit(f"{page}: an output names a folder of this machine")
    rest = iter(answers)

    def written(found):
        space, language, mark, _ = found.groups()
        if not (language == "text" and mark.strip().startswith("output")):
            return found[0]
        return f"{space}```{language}{mark}\n{indent(next(rest), space)}\n{space}```"

    path = ROOT / page
    path.write_text(FENCE.sub(written, path.read_text("utf-8")), "utf-8")
    print(f"{page}: {len(answers)} outputs")


if __name__ == "__main__":
    given = [str(Path(page).resolve().relative_to(ROOT)) for page in sys.argv[1:]]
    every = [
        page for page in ("README.md", *PAGES) if any(block.is_output for block in blocks(page))
    ]
    for page in given or every:
        renew(page)
