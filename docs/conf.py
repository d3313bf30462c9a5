"""The manual, built by `make docs`; nothing in it is loaded from another host."""

import re
import sys
from pathlib import Path

from sphinx.application import Sphinx

import gcnii
from gcnii.cli import app as command_line
from gcnii.nn import MODELS

project = "gcnii"
author = "the authors of gcnii"
copyright = "the authors of gcnii; MIT licence"
release = version = gcnii.__version__
sys.path.insert(0, str(Path(__file__).parent))  # for mathml
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "mathml"]
exclude_patterns = ["_build"]

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["manual.css"]
html_title = f"gcnii {release}"
html_copy_source = False
html_show_sphinx = False

# Links to headings as GitHub has them, which shows the same pages.
myst_heading_anchors = 4

# Formulas as GitHub has them, between dollars; an amount such as $5 is none.
myst_enable_extensions = ["dollarmath"]
myst_dmath_allow_space = False
myst_dmath_allow_digits = False
html_math_renderer = "mathml"

# Notebooks are text, and run when the manual is built; a cell that fails ends the build.
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


def insert(sphinx: Sphinx, page: str, source: list[str]) -> None:
    """Append to two pages what the package itself says, and say which blocks are outputs."""
    if page in MADE:
        source[0] += MADE[page]()
    source[0] = OUTPUT.sub(r"\1```{code-block} text\n\1:class: output\n\n", source[0])


def commands() -> str:
    """The help of every command, as the command line has it."""
    text = command_line.generate_docs(output_format="markdown", heading_level=1)
    text = text[text.index("**Commands**:") :]
    text = text.replace(" -m sphinx [OPTIONS]", " [OPTIONS]")  # the program that runs this
    return FLAG.sub(lambda found: f"`{found[1]}`" if found[1] else found[0], text)


def models() -> str:
    """The card of every model, as a table."""
    rows = ["|model|use it when|equation|paper|", "|---|---|---|---|"]
    for name, model in MODELS.items():
        card = model.card
        equation = card.equation.replace("|", "\\|").replace("*", "\\*")
        rows.append(f"|`{name}`|{card.when}|{equation}|{card.paper}|")
    return "\n".join(rows)


# Flags in sentences, as code: "--" would become a dash.  Code itself is passed over.
FLAG = re.compile(r"^```.*?^```$|`[^`\n]*`|(--[a-z][a-z-]+)", re.MULTILINE | re.DOTALL)
OUTPUT = re.compile(r"^( *)```text output.*\n", re.MULTILINE)
MADE = {"reference/commands": commands, "reference/models": models}


def setup(sphinx: Sphinx) -> None:
    """What Sphinx calls before it reads the pages."""
    sphinx.connect("source-read", insert)
