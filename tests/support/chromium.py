"""Chromium for the tests of the page; `python tests/support/chromium.py` installs one.

It is installed into this Python's environment.  playwright does not download its browsers from a
package registry; npm has @sparticuz/chromium, 70 MB with the libraries and fonts that it needs, so
that a bare machine can run it.  Without npm, or not on Linux and x86-64, install any Chromium.
"""

import hashlib
import io
import os
import platform
import shutil
import subprocess
import sys
import tarfile
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

FOLDER = Path(sys.prefix) / "chromium"
VERSION = "153.0.0"
SHA512 = (
    "8e2196a92bcf31dbb8f8ff538a562a011ef21063c41c8371fa50af13f36a34ef"
    "c41d8cc5ff1d615222394fa8a8548b7b744cbb9fcf1bcb24f4be4f9d9ec810c0"
)
PACKAGE = f"@sparticuz/chromium@{VERSION}"
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")  # of the system's own
FONTS = "<fontconfig><dir>{0}/fonts</dir><cachedir>{0}/fonts/cache</cachedir></fontconfig>"

# WCAG's contrast of each element's text with the ground of the page.
CONTRAST = """all => all.map(one => {
  const light = colour => colour.match(/[\\d.]+/g).slice(0, 3).map(c => c / 255)
    .map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const [a, b] = [getComputedStyle(one).color, getComputedStyle(document.body).backgroundColor]
    .map(light);
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
})"""


def screens():
    """A width and a scheme of colours: each of both, and in `make slow` each with each."""
    import pytest

    crossed = ((1280, "dark"), (400, "light"))
    rest = [pytest.param(*one, marks=pytest.mark.slow) for one in crossed]
    return [(1280, "light"), (400, "dark"), *rest]


def launch_options():
    """playwright's options to start the browser, ours or the system's; None if there is none."""
    # Chromium's sandbox does not work as root, and containers often run as root.
    options = {"args": ["--no-sandbox"]}
    if FOLDER.is_dir():
        own = {
            "LD_LIBRARY_PATH": str(FOLDER / "lib"),
            "FONTCONFIG_FILE": str(FOLDER / "fonts.conf"),
        }
        return options | {"executable_path": FOLDER / "chromium", "env": os.environ | own}
    found = next(filter(None, map(shutil.which, NAMES)), None)
    return options | {"executable_path": found} if found else None


def launched():
    """The running browser; skips without one, or fails if $GCNII_REQUIRE_BROWSER is 1."""
    import pytest

    options = launch_options()
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        options = None
    if not options:
        if os.environ.get("GCNII_REQUIRE_BROWSER") == "1":
            names = ", ".join(NAMES)
            pytest.fail(
                f"needs playwright, and tests/support/chromium.py run or one of {names} on the PATH"
            )
        pytest.skip("no Chromium, or no playwright")
    with sync_playwright() as driver:
        yield driver.chromium.launch(**options)


@contextmanager
def tab_of(browser, address, **options):
    """The page at this address; its messages and errors are in `heard`, its alerts in `dialogs`,
    and the addresses of other files that it wants in `asked`.
    """
    tab = browser.new_page(viewport={"width": 1280, "height": 900}, **options)
    tab.heard, tab.dialogs, tab.asked = [], [], []
    tab.on("dialog", lambda dialog: (tab.dialogs.append(dialog.message), dialog.dismiss()))
    tab.on("console", lambda message: tab.heard.append(message.text))
    tab.on("pageerror", lambda error: tab.heard.append(str(error)))
    own = ("data:", address.partition("#")[0])
    tab.on("request", lambda one: one.url.startswith(own) or tab.asked.append(one.url))
    tab.goto(address)
    yield tab
    tab.close()


def resize(tab, width, height=900):
    """Make the window this large, and wait until the page has marked which tables fit into it."""
    tab.set_viewport_size({"width": width, "height": height})
    tab.evaluate("new Promise((seen) => requestAnimationFrame(() => requestAnimationFrame(seen)))")


def install():
    """Download, verify and unpack; the folder appears whole or not at all."""
    with TemporaryDirectory(dir=FOLDER.parent) as beside:
        command = ["npm", "pack", PACKAGE, "--silent", "--pack-destination", beside]
        subprocess.run(command, check=True, timeout=300, cwd=beside, stdout=subprocess.DEVNULL)
        package = next(Path(beside).glob("*.tgz")).read_bytes()
        found = hashlib.sha512(package).hexdigest()
        if found != SHA512:
            raise ValueError(f"{PACKAGE} has the SHA-512 {found}, expected {SHA512}")
        unpack(package, Path(beside) / "chromium")
        (Path(beside) / "chromium").rename(FOLDER)


def unpack(package, folder):
    """The browser, its libraries and its fonts, each compressed by itself within the package."""
    import brotli

    folder.mkdir()
    with tarfile.open(fileobj=io.BytesIO(package)) as files:
        for name in ("al2023.tar.br", "fonts.tar.br", "swiftshader.tar.br", "chromium.br"):
            content = brotli.decompress(files.extractfile(f"package/bin/{name}").read())
            if name == "chromium.br":
                (folder / "chromium").write_bytes(content)
            else:
                with tarfile.open(fileobj=io.BytesIO(content)) as part:
                    part.extractall(folder, filter="data")
    (folder / "chromium").chmod(0o755)
    (folder / "fonts.conf").write_text(FONTS.format(FOLDER))


if __name__ == "__main__":
    if FOLDER.is_dir() or (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        sys.exit()
    try:
        install()
    # the tests decide whether they can do without
    except (OSError, subprocess.SubprocessError) as error:
        print(f"no Chromium from npm: {error}", file=sys.stderr)
