"""`python docs/pictures.py [NAME…]` makes docs/pictures/NAME.png from what commands write.

A picture is one entry of PICTURES: the code of a page of the manual, or commands, are run in an
empty folder, and Chromium shows the page or picture that they wrote, or that a server sends.  The
pictures of results (depth, speed, scale-growth) are those of `gcnii report readme`.
"""

import io
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "pictures"
LARGEST = 120_000  # bytes
sys.path.insert(0, str(ROOT / "tests"))

from support.chromium import launch_options  # noqa: E402
from support.command_line import call  # noqa: E402
from support.manual import run, running, words  # noqa: E402


class Picture(NamedTuple):
    """What is shown in a picture, and the commands that make it."""

    page: str  # a file that the commands write, or the address of what `server` serves
    commands: tuple[str, ...] = ()
    code: str = ""  # a page of the manual whose code is run first
    server: str = ""  # a command that goes on running while the picture is taken
    width: int = 1000  # pixels of the window
    height: int = 0  # pixels shown; 0: all
    element: str = ""  # a CSS selector of the element shown; without one, the page
    act: Callable | None = None  # what to do to the page first, as `act(tab)`


def ask_for(node):
    """Type a node into a server's page, and wait for the reasons."""

    def act(tab):
        tab.fill("#node", node)
        tab.click("button")
        tab.locator("#nodes").wait_for()

    return act


FIRST = "gcnii train customers --model gcnii --out runs/customers"
RUNS = "gcnii train customers --model gcnii --layers 4 --epochs 60 --runs 3 --out runs/customers"
REPORT = "gcnii report run runs/customers"
PICTURES: dict[str, Picture] = {
    "report": Picture("runs/customers.html", (FIRST, REPORT), width=1260, height=1060),
    "customer": Picture(
        "why.svg", (FIRST, "gcnii explain runs/customers c1244 --out why.svg"), element="svg"
    ),
    "evaluate": Picture("runs/customers.html", (RUNS, REPORT), width=1260, element="#scores"),
    "calibration": Picture("runs/customers.html", (RUNS, REPORT), element="#calibration"),
    "why": Picture(
        "why.svg", (RUNS, "gcnii explain runs/customers c0211 --out why.svg"), element="svg"
    ),
    "serve": Picture(
        "http://127.0.0.1:8000/",
        (RUNS.replace(" --runs 3", ""),),
        server="gcnii serve runs/customers --port 8000",
        width=700,
        height=620,
        act=ask_for("c0211"),
    ),
    "tune": Picture(
        "runs/digits/search.png",
        ("gcnii tune digits --trials 24 --epochs 40 --seeds 1 --out runs/digits",),
        element="img",
    ),
    "doctor": Picture(
        "pictures/probe.svg",
        ("gcnii doctor digits --trials 0 --depths 16 --out pictures",),
        element="svg",
    ),
    "rare-class": Picture(
        "runs/payments.html",
        ("gcnii report run runs/payments",),
        code="docs/howto/rare-classes.md",
        width=700,
        element="#decision",
    ),
    "errors": Picture(
        "runs/flats.html",
        ("gcnii report run runs/flats",),
        code="docs/howto/numbers.md",
        element="#errors",
    ),
    "numbers": Picture("prices.png", code="docs/howto/numbers.md", element="img"),
}


def take(browser, picture, folder):
    """The picture as PNG."""
    if picture.code:
        list(run(picture.code, folder))
    for command in picture.commands:
        answer = call(*words(command)[1:], cwd=folder)
        if answer.code:
            raise SystemExit(f"{command}: {answer.err}")
    is_address = "://" in picture.page
    address = picture.page if is_address else (folder / picture.page).as_uri()
    window = {"width": picture.width, "height": picture.height or 800}
    with running(picture.server, address, folder) if picture.server else nullcontext():
        tab = browser.new_page(viewport=window, color_scheme="light")
        tab.goto(address)
        if picture.act:
            picture.act(tab)
        if picture.element:
            return tab.locator(picture.element).first.screenshot()
        return tab.screenshot(full_page=not picture.height)


def smaller(png):
    """The same with a palette of 256 colours, which text and plots do with."""
    from PIL import Image

    out = io.BytesIO()
    image = Image.open(io.BytesIO(png)).convert("RGB")
    image.quantize(256, dither=Image.Dither.NONE).save(out, "png", optimize=True)
    return out.getvalue()


def main(names):
    """Take the pictures of these names, or all."""
    from playwright.sync_api import sync_playwright

    options = launch_options() or sys.exit("no Chromium: python tests/support/chromium.py")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(**options)
        for name in names or PICTURES:
            with TemporaryDirectory() as folder:
                png = smaller(take(browser, PICTURES[name], Path(folder)))
            if len(png) > LARGEST:
                raise SystemExit(f"{name}: {len(png)} bytes; show less of it than {LARGEST}")
            (FOLDER / f"{name}.png").write_bytes(png)
            print(f"docs/pictures/{name}.png: {len(png) // 1000} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
