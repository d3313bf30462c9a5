"""One HTML file with its own style and script, which asks for no other file and runs no other."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from pathlib import Path

from markupsafe import Markup

from gcnii.errors import visible
from gcnii.files import first_bytes

START = (
    b'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    b'<meta http-equiv="Content-Security-Policy" content="default-src &#39;none&#39;; style-src '
)
LONGEST = 80  # characters of a name
# The page's own style and script and nothing else: no text of a document can bring its own.
POLICY = (
    "default-src 'none'; style-src {}; script-src {}; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)


def one_file(package: str, **values: object) -> str:
    """The page.html among the package's templates, with these values, as HTML.

    It extends frame.html; page.css and page.js of the package, if it has them, follow those of the
    frame.  Every value is escaped unless it is Markup, and what a terminal or browser would obey
    instead of showing it is shown.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    shared = "gcnii.report"
    templates = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader(shared)]),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {"short": short, "sentence": sentence}
    known = templates.list_templates()

    def part(kind: str) -> Markup:
        names = [name for name in (f"frame.{kind}", f"page.{kind}") if name in known]
        return Markup("\n".join(templates.get_template(name).render() for name in names))

    style, script = part("css"), part("js")
    policy = POLICY.format(_source(style), _source(script))
    own = {"style": style, "script": script, "policy": policy}
    return templates.get_template("page.html").render(**own, **values)


def is_page(path: Path) -> bool:
    """Whether a file begins as these pages do."""
    return first_bytes(path).startswith(START)


def _shown(value: object) -> object:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def short(name: object, most: int = LONGEST) -> str:
    """A name of at most so many characters, cut in the middle if it is longer."""
    text, half = str(name), most // 2
    return text if len(text) <= most else f"{text[: half - 1]}…{text[-half:]}"


def sentence(text: str) -> str:
    """The text with a capital first and a full stop."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def _source(text: str) -> str:
    """What a Content-Security-Policy calls an inline style or script with exactly this text."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
