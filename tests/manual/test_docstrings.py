"""Every public name is documented in numpydoc's sections, and its examples run."""

import doctest
import inspect
import re
import warnings
from functools import cached_property
from pathlib import Path
from types import FunctionType

import pytest

import gcnii

ROOMS = ("analysis", "data", "inference", "nn")
PUBLIC = [name for name in dir(gcnii) if name not in (*ROOMS, "__version__")]
FUNCTIONS = [name for name in PUBLIC if inspect.isfunction(getattr(gcnii, name))]
ERRORS = [name for name in PUBLIC if "Error" in name or name == "Diverged"]
SECTION = re.compile(r"^(Parameters|Returns|Examples)\n-+$", re.MULTILINE)


def sections(name):
    return SECTION.findall(inspect.getdoc(getattr(gcnii, name)))


def documented(thing):
    """The names under Parameters."""
    text = re.split(r"^Parameters\n-+\n", inspect.getdoc(thing), maxsplit=1, flags=re.MULTILINE)[1]
    text = re.split(r"\n\n[A-Z]\w+\n-+\n", text)[0]
    heads = re.findall(r"^([\w*][\w*, ]*)(?: :.*)?$", text, re.MULTILINE)
    return {name.strip().lstrip("*") for head in heads for name in head.split(",")}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_says_what_it_takes_and_returns_with_an_example(name):
    assert sections(name) == ["Parameters", "Returns", "Examples"]
    assert documented(getattr(gcnii, name)) == set(
        inspect.signature(getattr(gcnii, name)).parameters
    )


@pytest.mark.parametrize("name", sorted(set(PUBLIC) - set(FUNCTIONS) - set(ERRORS)))
def test_a_class_has_an_example(name):
    assert sections(name)[-1] == "Examples"


@pytest.mark.parametrize("name", sorted(set(PUBLIC) - set(FUNCTIONS)))
def test_a_public_method_is_documented(name):
    thing = getattr(gcnii, name)
    kinds = (FunctionType, classmethod, property, cached_property)
    methods = [one for one, value in vars(thing).items() if isinstance(value, kinds)]
    bare = [one for one in methods if not inspect.getdoc(getattr(thing, one))]
    assert [one for one in bare if not one.startswith("_")] == []


@pytest.mark.parametrize("name", [*sorted(set(PUBLIC) - set(ERRORS)), "nn.GCNII"])
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    room, _, last = name.rpartition(".")
    thing = getattr(getattr(gcnii, room) if room else gcnii, last)
    examples = doctest.DocTestFinder(recurse=False).find(thing, name, globs={"Path": Path})
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    assert sum(len(one.examples) for one in examples) > 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of libraries that an example imports
        for one in examples:
            runner.run(one)
    assert runner.failures == 0
