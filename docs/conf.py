"""The manual, built by `make docs`; nothing in it is loaded from another host."""

import logging
import os
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from docutils import nodes
from sphinx.application import Sphinx

import gcnii

project = "gcnii"
author = "the authors of gcnii"
copyright = "the authors of gcnii; MIT licence"
release = version = gcnii.__version__
sys.path.insert(0, str(Path(__file__).parent))  # for its modules
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "mathml", "generated"]
exclude_patterns = ["_build"]

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["manual.css"]
html_js_files = [("copy.js", {"defer": "defer"})]
html_logo = html_favicon = "_static/mark.svg"
# Blues near those of the pictures; code is small enough for 100 columns.
BLUE, LIGHT_BLUE = "#0068a3", "#56b4e9"
COLOURED = ("brand-primary", "brand-content", "api-name", "api-pre-name")
html_theme_options = {
    "light_css_variables": {f"color-{name}": BLUE for name in COLOURED} | {"code-font-size": "78%"},
    "dark_css_variables": {f"color-{name}": LIGHT_BLUE for name in COLOURED},
}
html_title = f"gcnii {release}"
html_copy_source = False
html_show_sphinx = False

# Links to headings as GitHub has them, which shows the same pages.
myst_heading_anchors = 4

# Formulas between dollars and notes (> [!NOTE]) as GitHub has them; an amount such as $5 is none.
myst_enable_extensions = ["dollarmath", "alert"]
myst_dmath_allow_space = False
myst_dmath_allow_digits = False
html_math_renderer = "mathml"

# Notebooks are text, and run when the manual is built; a cell that fails ends the build.
# IPython has a profile of its own: nothing of the user's, and no warning of its local sockets.
PROFILE = TemporaryDirectory()
os.environ["IPYTHONDIR"] = PROFILE.name
SILENT = Path(PROFILE.name) / "profile_default/ipython_kernel_config.py"
SILENT.parent.mkdir()
SILENT.write_text("get_config().IPKernelApp.log_level = 'ERROR'\n", "utf-8")
logging.getLogger("traitlets").setLevel(logging.WARNING)
nb_execution_mode = "force"
nb_execution_in_temp = True  # what they write is theirs alone
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_ipywidgets_js = {}  # would be loaded from another host

# Docstrings say what a type means; those of other libraries have no page here to link to.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
default_role = "code"  # of `names` in docstrings
napoleon_google_docstring = False
nitpick_ignore_regex = [("py:.*", r"(?!gcnii\.).*")]


OUTPUT = re.compile(r"^( *)```text output.*\n", re.MULTILINE)
GROUP = re.compile(
    r'<p class="caption" role="heading"><span class="caption-text">(.*?)</span></p>\s*'
    r"(<ul.*?\n</ul>\n?)(?=<p class=\"caption|\s*$)",
    re.DOTALL,
)


def mark_outputs(sphinx: Sphinx, page: str, source: list[str]) -> None:
    """Tell what a command prints from the command."""
    source[0] = OUTPUT.sub(r"\1```{code-block} text\n\1:class: output\n\n", source[0])


def fold_navigation(
    sphinx: Sphinx, page: str, template: str, context: dict[str, str], doctree: nodes.document
) -> None:
    """Fold the groups of the navigation, all but the one of the page."""

    def folded(found: re.Match[str]) -> str:
        opened = " open" if "current" in found[2] else ""
        return f"<details{opened}><summary>{found[1]}</summary>\n{found[2]}</details>"

    tree = context["furo_navigation_tree"]
    context["furo_navigation_tree"] = GROUP.sub(folded, tree)


def setup(sphinx: Sphinx) -> None:
    """What Sphinx calls before it reads the pages."""
    sphinx.connect("source-read", mark_outputs)
    sphinx.connect("html-page-context", fold_navigation, priority=900)  # after the theme
