"""The README and the pages of docs/ name only what exists, and `make test` skips no extra."""

import re
import tomllib
from pathlib import Path

import pytest
from support.command_line import call
from support.manual import PAGES as MANUAL
from support.manual import docs_module

import gcnii
import gcnii_paper
from gcnii.nn import MODELS

ROOT = Path(__file__).parents[1]
PACKAGE, STUDY = Path(gcnii.__file__).parent, Path(gcnii_paper.__file__).parent
README = (ROOT / "README.md").read_text("utf-8")
PAGES = ["README.md", "CONTRIBUTING.md", *MANUAL]
MADE = set(docs_module("generated").pages())  # when the manual is built


CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text("utf-8")


def section(title, text=README):
    """A page's text below a heading, up to the next one."""
    return text.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_the_tree_shows_every_room_once():
    shown = re.findall(
        r"^      ([a-z]+)(?:/|\.py) ", section("The packages", CONTRIBUTING), re.MULTILINE
    )
    rooms = (path.stem for path in PACKAGE.iterdir() if path.is_dir() or path.suffix == ".py")
    assert sorted(shown) == sorted(room for room in rooms if not room.startswith("_"))


def test_it_is_read_in_a_few_minutes():
    prose = re.sub(r"<!-- results.*?end of results -->|```.*?```", "", README, flags=re.DOTALL)
    assert 400 <= len(prose.split()) <= 900


def test_the_models_to_choose_from_exist():
    table = section("Which model")
    first_column = " ".join(re.findall(r"^\|(.*?)\|", table, re.MULTILINE))
    names = re.findall(r"`([a-z-]+)`", first_column)
    assert len(names) >= 6
    assert set(names) <= set(MODELS)


def test_the_commands_that_it_names_exist(tmp_path):
    known = call("--help", cwd=tmp_path).out
    use = section("Your own tables")
    named = set(re.findall(r"gcnii ([a-z]+) ", use))
    listed = set(re.findall(r"`([a-z]+)`", use.split("`gcnii --help`")[1]))
    assert {"train", "predict", "reproduce", "doctor"} <= named | listed
    for name in named | listed:
        assert re.search(rf"│ {name} ", known), name


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    folder = (ROOT / page).parent
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", (ROOT / page).read_text("utf-8"))
    for link in links:
        leads = link.startswith("https://") or (folder / link).exists()
        assert leads or (folder / link).resolve() in MADE, link


@pytest.mark.parametrize("page", PAGES)
def test_files_that_a_page_names_exist(page):
    files = [str(path) for top in (PACKAGE, STUDY, ROOT / "tests") for path in top.rglob("*.py")]
    for name in re.findall(r"`([\w/]+\.py)`", (ROOT / page).read_text("utf-8")):
        assert any(file.endswith(f"/{name}") for file in files), name


APART = {"mlflow"}  # takes an older importlib-metadata than the pinned one; see `make mlflow`


def test_make_test_installs_every_extra_and_pins_it():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    inside = re.search(r"gcnii\[([\w,]+)\]", extras["dev"][0])[1].split(",")
    assert set(inside) == set(extras) - {"dev", *APART}
    pinned = re.findall(r"^([\w-]+)==", (ROOT / "constraints.txt").read_text("utf-8"), re.MULTILINE)
    assert {re.match(r"[\w-]+", extras[name][0])[0] for name in inside} <= set(pinned)
