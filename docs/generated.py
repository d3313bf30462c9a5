"""Pages of the reference that are made of the package itself when the manual is built.

A page a command, from its help; a page a public name of Python, from its docstring; the tables of
commands, of names, of models and of settings.  The pages lie in docs/reference/commands/ and
docs/reference/api/, which git ignores, and are written only where they change.  For programs that
read the manual, llms.txt lists its pages, and SKILL.md is the README's and other pages' essence.
"""

import inspect
import posixpath
import re
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, get_args, get_origin

from sphinx.application import Sphinx

from gcnii.cli import app as command_line
from gcnii.cli.flags import GROUPS
from gcnii.nn import MODELS
from gcnii.nn.settings import Setting, setting_of
from gcnii.train.plan import model_defaults, model_hints
from gcnii.train.recipe import Recipe, recipe_hints

DOCS = Path(__file__).parent
MARK = "<!-- made by docs/generated.py -->"  # where a page has its tables
# Public names by what they are for, each with the members that its page shows.  Whoever adds a name
# to gcnii.__init__ adds it here; tests/manual/test_reference.py compares.
MODULES = {"Ensemble": "gcnii.results.ensemble", "Tuned": "gcnii.tuning.closing"}
RESULT = (
    "test val std metric alone evaluate explain report predict predict_proba predict_sets "
    "predict_interval predict_new embed summary save"
)
API: dict[str, dict[str, str]] = {
    "Loading and saving graphs": {
        "load": "",
        "from_frames": "",
        "from_query": "",
        "from_networkx": "",
        "from_pyg": "",
        "from_scipy": "",
        "join": "",
        "save": "",
        "Graph": "n d m k with_features labelled fingerprint",
        "Split": "of_roles",
        "stratified_split": "",
        "split_by_time": "",
    },
    "Training": {
        "fit": "",
        "tune": "",
        "Recipe": "",
        "Tuned": "model settings verdict winner runner_up leaderboard",
        "GCNIIClassifier": "fit predict predict_proba score",
        "GCNIIRegressor": "fit predict score",
    },
    "Results": {
        "Result": f"{RESULT} at scores network",
        "Ensemble": f"leaderboard member {RESULT}",
        "open_bundle": "",
        "to_table": "",
        "export_onnx": "",
        "mlflow.log_model": "",
        "mlflow.load_model": "",
    },
    "Callbacks of fit": {
        "EpochReport": "train_loss val_loss val",
        "CsvLog": "",
        "TensorBoard": "",
        "mlflow.MlflowLog": "",
        "StopTraining": "",
    },
    "Your own training loop": {
        "propagation_matrix": "",
        "feature_matrix": "",
        "nn.GCNII": "",
        "watch": "",
    },
    "Errors": dict.fromkeys(
        ("GcniiError", "InputError", "GraphError", "DataError", "BundleError", "Diverged"), ""
    ),
}
MADE_ELSEWHERE = ("Result", "Ensemble", "Tuned", "EpochReport")  # by a function: no arguments shown
FIELDS = ("n", "d", "m", "k")  # described by the class as well

ABILITIES = ("edge weights", "types of edges", "several processes", "sampled neighbours")

MOST = 8  # pages that use a command or a name and are linked

# Flags and '' in sentences, as code: "--" would become a dash.  Code itself is passed over.
FLAG = re.compile(r"^```.*?^```$|`[^`\n]*`|(--[a-z][a-z-]+|'')", re.MULTILINE | re.DOTALL)
BELOW = re.compile(r"^\*\*Commands\*\*:\n|^\* \[.*\]\(#gcnii-.*\n", re.MULTILINE)
PARAMETER = re.compile(r"^\* `([^`]+)`: (.*)$", re.MULTILINE)


@cache
def commands() -> dict[str, str]:
    """What the command line says of each command: `gcnii train` → its help in Markdown."""
    text = command_line.generate_docs(output_format="markdown", heading_level=1)
    text = re.sub(r"\n {4}(?!- \[)(?=\S)", " ", text)  # a flag in a docstring has several lines
    text = text.replace(" -m sphinx [OPTIONS]", " [OPTIONS]")  # the program that runs this
    parts = re.split(r"^#+ (gcnii .*)\n", text, flags=re.MULTILINE)
    return {name: part.strip() for name, part in zip(parts[1::2], parts[2::2], strict=True)}


def summary_of(command: str) -> str:
    """The first sentence of a command's help."""
    text = re.sub(r"^```.*?^```$", "", commands()[command], flags=re.MULTILINE | re.DOTALL)
    return next(line for line in text.splitlines() if line)


def with_code(text: str) -> str:
    """Flags in sentences as code."""
    return FLAG.sub(lambda found: f"`{found[1]}`" if found[1] else found[0], text)


def page_name(command: str) -> str:
    """`gcnii data check` → `data-check`."""
    return command.removeprefix("gcnii ").strip("-").replace(" ", "-")


def command_page(command: str) -> str:
    """The page of a command: its help, where each flag is a target of links."""
    text = commands()[command].replace("```console\n", "```text\n", 1)
    text = PARAMETER.sub(option, with_code(BELOW.sub("", f"{text}\n")))
    text = re.sub(r"^\*\*(.*)\*\*:$", r"## \1", text, flags=re.MULTILINE)
    text = text.replace("\n## Parameters\n", "\n## Flags\n")
    below = [one for one in commands() if one.startswith(f"{command} ")]
    rows = [f"|[`{one}`]({page_name(one)}.md)|{with_code(summary_of(one))}|" for one in below]
    table = "\n".join(["|command|what it does|", "|---|---|", *rows]) if rows else ""
    parts = [f"# {command}", f"```{{program}} {command}\n```", text, table]
    parts.append(used_in(rf"^ *{re.escape(command)}(?![\w-])"))
    return "\n\n".join(part for part in parts if part) + "\n"


def option(found: re.Match[str]) -> str:
    """A flag or an argument of a command, with what it says."""
    about = re.sub(r" \*\[choices: (.*?)\]\*", lambda one: f" One of {listed(one[1])}.", found[2])
    about = re.sub(r" \*\[default: (.*?)\]\*", r" Default: `\1`.", about)
    about = about.replace(" **[required]**", " Required.")
    return f"```{{option}} {found[1]}\n{about}\n```\n"


def listed(names: str) -> str:
    """`a, b` → each as code."""
    return ", ".join(f"`{name}`" for name in names.split(", "))


@cache
def lessons() -> dict[Path, tuple[str, str]]:
    """The pages that teach: each with its title and its text."""
    found = {}
    for room in ("start", "tutorials", "howto", "understand"):
        for path in sorted((DOCS / room).glob("*.md")):
            text = path.read_text("utf-8")
            title = re.search(r"^# (.*)$", text, re.MULTILINE)
            found[path.relative_to(DOCS)] = (title[1] if title else path.stem, text)
    return found


def used_in(call: str) -> str:
    """Links to the pages that use a command, or a name of Python, most."""
    word = re.compile(call, re.MULTILINE)
    counts = {page: len(word.findall(text)) for page, (_, text) in lessons().items()}
    most = sorted((page for page in counts if counts[page]), key=lambda page: -counts[page])[:MOST]
    links = [f"[{lessons()[page][0]}](../../{page})" for page in most]
    return f"## Used in\n\n{' · '.join(links)}" if links else ""


def table_of_commands() -> str:
    """Every command, with a link to its page; anchors are those of the former single page."""
    groups = {"Your graph": [], "Reproducing the paper": []}  # type: dict[str, list[str]]
    paper = ("reproduce", "theory", "bench", "report html", "report readme")
    for command in commands():
        name = command.removeprefix("gcnii ")
        group = "Reproducing the paper" if name.startswith(paper) else "Your graph"
        anchor = f'<span id="gcnii-{page_name(command)}"></span>'
        link = f"[`{name}`](commands/{page_name(command)}.md)"
        groups[group].append(f"|{anchor}{link}|{with_code(summary_of(command))}|")
    tables = [
        f"## {title}\n\n|command|what it does|\n|---|---|\n" + "\n".join(rows)
        for title, rows in groups.items()
    ]
    return "\n\n".join(tables) + "\n\n" + toctree("commands", map(page_name, commands()))


def toctree(folder: str, pages: Iterable[str]) -> str:
    """The pages of a folder, for the navigation."""
    lines = (f"{folder}/{page}" for page in pages)
    return "\n".join(["```{toctree}", ":hidden:", "", *lines, "```"])


def thing(name: str) -> Any:
    """A public name: `load`, `nn.GCNII`, `Ensemble`."""
    room, _, last = name.rpartition(".")
    return getattr(import_module(MODULES.get(name) or f"gcnii.{room}".rstrip(".")), last)


def api_page(name: str, members: str) -> str:
    """The page of a public name, from its docstring."""
    found = thing(name)
    full = full_name(name)
    kind = "function"
    if inspect.isclass(found):
        kind = "exception" if issubclass(found, BaseException) else "class"
    lines = [f".. auto{kind}:: {full}{'()' if name in MADE_ELSEWHERE else ''}"]
    if members:
        lines += ["   :exclude-members: __init__, __new__", ""]
        for one in members.split():
            owner = inspect.getattr_static(found, one)
            form = "method" if callable(owner) or isinstance(owner, classmethod) else "property"
            lines += [f"   .. auto{form}:: {full}.{one}"]
            lines += ["      :no-index:"] if one in FIELDS else []
    body = "\n".join(lines)
    title = name if name in MODULES else f"gcnii.{name}"
    used = used_in(rf"(?<![\w.]){re.escape(full)}\b(?!\.)")
    return f"# {title}\n\n```{{eval-rst}}\n{body}\n```\n\n{used}\n"


def first_sentence(text: str) -> str:
    """`A. B` → `A.`, on one line."""
    line = " ".join(text.split())
    return re.split(r"(?<=[.?])\s(?=[A-Z`])", line, maxsplit=1)[0]


def full_name(name: str) -> str:
    """`load` → `gcnii.load`."""
    return f"{MODULES.get(name, 'gcnii')}.{name}"


def table_of_names() -> str:
    """Every public name, with a link to its page; anchors are those of the former single page."""
    parts = []
    for title, group in API.items():
        rows = ["|name|what it is|", "|---|---|"]
        for name in group:
            link = f'<span id="{full_name(name)}"></span>[`{name}`](api/{name}.md)'
            rows.append(f"|{link}|{first_sentence(inspect.getdoc(thing(name)) or '')}|")
        parts.append(f"## {title}\n\n" + "\n".join(rows))
    pages = (name for group in API.values() for name in group)
    return "\n\n".join(parts) + "\n\n" + toctree("api", pages)


def models() -> str:
    """The cards of the models: those that are a first choice for something, then the rest."""
    first = {name: model for name, model in MODELS.items() if model.card.when}
    parts = ["## Recommended", "", "|model|use it when|", "|---|---|"]
    parts += [f"|[`{name}`](#{name})|{model.card.when}|" for name, model in first.items()]
    for name, model in first.items():
        settings = ", ".join(f"{key} {value}" for key, value in model_defaults(name).items())
        parts += [
            "",
            f"### `{name}`",
            "",
            f"{about(model)} ({model.card.paper})",
            "",
            f"```text\n{model.card.equation}\n```",
            "",
            f"Settings: {settings}.",
        ]
    parts += ["", "## For comparison", "", "|model|equation|paper|", "|---|---|---|"]
    for name, model in MODELS.items():
        if name not in first:
            equation = model.card.equation.replace("|", "\\|").replace("*", "\\*")
            parts.append(f"|`{name}`|{equation}|{model.card.paper}|")
    parts += ["", "## What each can do", "", f"|model|{'|'.join(ABILITIES)}|", "|---" * 5 + "|"]
    for name, model in MODELS.items():
        able = (
            model.card.uses_graph and model.card.uses_weights,
            model.card.uses_graph and model.uses_types,
            model.can_be_cut,
            model.supports_sampling,
        )
        parts.append(f"|`{name}`|{'|'.join('yes' if one else '–' for one in able)}|")
    return "\n".join(parts)


def about(model: type) -> str:
    """The first sentence of a model's docstring."""
    return (inspect.getdoc(model) or "").split("\n\n")[0].replace("\n", " ").replace("*", "\\*")


def values_of(kind: Any, setting: Setting) -> str:
    """The values that a setting takes: its choices, or its type and bounds."""
    if choices := [one for one in get_args(kind) if isinstance(one, str)]:
        return ", ".join(f"`{one}`" for one in choices)
    names = {int: "integer", float: "number", bool: "yes or no", str: "text"}
    if get_origin(kind) is tuple:
        return f"integers{setting.bounds}"
    return f"{names[kind]}{setting.bounds}"


def shown(value: object) -> str:
    """A default as one writes it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return f"`{value}`" if isinstance(value, str) and value else f"{value}" or "–"


def settings() -> str:
    """Every setting of the models and of training, from its declaration."""
    head = ["|setting|default|values|meaning|", "|---|---|---|---|"]
    parts = ["## The model's", "", *head, *settings_of_models()]
    defaults = vars(Recipe())
    for name, hint in recipe_hints().items():
        if name in GROUPS:
            parts += ["", f"## {GROUPS[name].name}", "", *head]
        parts.append(row(name, shown(defaults[name]), *setting_of(hint)))
    return "\n".join(parts)


def settings_of_models() -> list[str]:
    """A line for each setting of a model; defaults are those of models that are recommended."""
    hints: dict[str, Any] = {}
    for model in MODELS:
        hints |= {name: hint for name, hint in model_hints(model).items() if name not in hints}
    rows = []
    for name, hint in hints.items():
        having = [model for model in MODELS if name in model_defaults(model)]
        defaults: dict[str, list[str]] = {}
        for model in [one for one in having if MODELS[one].card.when] or having:
            defaults.setdefault(shown(model_defaults(model)[name]), []).append(f"`{model}`")
        each = [f"{value}: {', '.join(models)}" for value, models in defaults.items()]
        rows.append(row(name, "<br>".join(each), *setting_of(hint)))
    return rows


def row(name: str, default: str, kind: Any, setting: Setting) -> str:
    """A line of a table of settings."""
    flag = f"--{name.replace('_', '-')}"
    name = f"`{name}`" if "_" not in name else f"`{name}`<br>`{flag}`"
    help = with_code(f"{setting.help[0].upper()}{setting.help[1:]}").replace("|", "\\|")
    if setting.unused_when:
        other, values = setting.unused_when
        help += f" (unused where `{other}` is {', '.join(map(str, values))})"
    return f"|{name}|{default}|{values_of(kind, setting)}|{help}|"


TOCTREE = re.compile(r"^```\{toctree\}\n:caption: ([^\n]*)\n:hidden:\n\n(.*?)^```$", re.M | re.S)
LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#]*)\.md(?=[)#])")
NUMBER_OR_LINK = re.compile(r"^\d+\. |\[([^\]]*)\]\([^)]*\)")
FENCED = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
MARKED = re.compile(r"^( *```\w+) .*$", re.MULTILINE)  # whether a block is run, and what it shows
# Not a heading, a table, a picture or a target.
PARAGRAPH = re.compile(r"(?<=\n\n)(?![#|!<(])\S.*?(?=\n\n|\n$)", re.DOTALL)
SKILL = """---
name: gcnii
description: Predict a class, several labels or a number for the nodes of a graph from tables of
  nodes and edges, on the command line or in Python; judge and explain the predictions. Use it for
  node classification and regression and for deep graph networks (GCNII), not for link prediction.
---

# gcnii
"""
# The sections of pages that SKILL.md consists of.
ESSENCE = {
    "../README.md": (
        "Install and try it",
        "Your own tables",
        "Python",
        "Which model",
        "What it does not do",
    ),
    "reference/cheatsheet.md": ("Cheat sheet",),
    "howto/scripts.md": ("Exit codes and JSON",),
    "howto/troubleshooting.md": ("By message",),
}


def opening(text: str) -> str:
    """The first sentence of a page, without links and the number of a list."""
    found = PARAGRAPH.search(FENCED.sub("", text))
    return first_sentence(NUMBER_OR_LINK.sub(r"\1", found[0])) if found else ""


def llms() -> str:
    """llms.txt: every page of the manual with its first sentence, in the groups of the index."""
    index = (DOCS / "index.md").read_text("utf-8")
    parts = ["# gcnii", f"> {' '.join(PARAGRAPH.findall(index)[0].split())}"]
    for caption, entries in TOCTREE.findall(index):
        lines = []
        for page in re.findall(r"([\w/-]+)>?$", entries, re.MULTILINE):
            text = (DOCS / f"{page}.md").read_text("utf-8")
            title = re.findall(r"^# (.*)$", text, re.MULTILINE)[0]
            lines.append(f"- [{title}]({page}.html): {opening(text)}")
        parts.append(f"## {caption}\n\n" + "\n".join(lines))
    return "\n\n".join([*parts, "## For coding agents\n\n- [SKILL.md](SKILL.md)"]) + "\n"


def skill() -> str:
    """SKILL.md: what a coding agent needs to use gcnii, with links from the manual's root."""
    parts = [SKILL]
    for page, wanted in ESSENCE.items():
        text = MARKED.sub(r"\1", (DOCS / page).read_text("utf-8"))
        here = posixpath.dirname(page.replace("../", ""))
        text = LINK.sub(lambda found, here=here: from_root(here, found[1]), text)
        for section in re.split(r"^(?=#{1,2} )", text, flags=re.MULTILINE):
            if section.partition("\n")[0].lstrip("# ") in wanted:
                parts.append(re.sub(r"^# ", "## ", section))
    return "\n\n".join(part.strip() for part in parts) + "\n"


def from_root(folder: str, link: str) -> str:
    """`../howto/tune`, from `reference` → `howto/tune.html`."""
    return posixpath.normpath(posixpath.join(folder, link)).removeprefix("docs/") + ".html"


TABLES = {
    "reference/commands": table_of_commands,
    "reference/api": table_of_names,
    "reference/models": models,
    "reference/settings": settings,
}


def pages() -> dict[Path, str]:
    """Every page that is made: where it lies, and its text."""
    room = DOCS / "reference"
    found = {room / f"commands/{page_name(one)}.md": command_page(one) for one in commands()}
    for names in API.values():
        for name, members in names.items():
            found[room / f"api/{name}.md"] = api_page(name, members)
    return found


def write_pages(sphinx: Sphinx) -> None:
    """Write the pages that changed, and remove those that are no longer made."""
    wanted = pages()
    for folder in {path.parent for path in wanted}:
        folder.mkdir(exist_ok=True)
        for path in set(folder.glob("*.md")) - set(wanted):
            path.unlink()
    for path, text in wanted.items():
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def insert_tables(sphinx: Sphinx, page: str, source: list[str]) -> None:
    """Insert into a page what the package itself says."""
    if page in TABLES:
        source[0] = source[0].replace(MARK, TABLES[page]())


def write_for_programs(sphinx: Sphinx, error: Exception | None) -> None:
    """Write llms.txt and SKILL.md to the root of the manual."""
    (Path(sphinx.outdir) / "llms.txt").write_text(llms(), "utf-8")
    (Path(sphinx.outdir) / "SKILL.md").write_text(skill(), "utf-8")


def setup(sphinx: Sphinx) -> dict[str, bool]:
    """What Sphinx calls when it loads the extension."""
    sphinx.connect("builder-inited", write_pages)
    sphinx.connect("build-finished", write_for_programs)
    sphinx.connect("source-read", insert_tables)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
