# On a fresh machine, `make demo` installs and shows GCNII at work; `make test` installs and runs
# every check.
PYTHON ?= python3
RUN = .venv/bin/
PIP = $(RUN)python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test clean
.DELETE_ON_ERROR:

demo: .venv/ready
	$(RUN)gcnii demo

test: .venv/ready-dev
	$(RUN)python tests/support/chromium.py
	$(RUN)ruff check .
	$(RUN)ruff format --check .
	$(RUN)mypy
	$(RUN)python -m pytest -n auto

# torch first and alone, so that its pinned build is installed before a dependency asks for another.
.venv/ready: pyproject.toml constraints.txt
	test -x .venv/bin/python || $(PYTHON) -m venv .venv
	$(PIP) torch
	$(PIP) -e .
	touch $@

.venv/ready-dev: .venv/ready
	$(PIP) -e '.[dev]'
	touch $@

clean:
	rm -rf .venv runs .pytest_cache .mypy_cache .ruff_cache .hypothesis
