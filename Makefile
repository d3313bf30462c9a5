# On a fresh machine, `make demo` installs and shows GCNII at work; `make test` installs and runs
# every check but the slow tests, which are `make slow`, and the longest, which are `make long`; `make
# data` runs those of `make test` again that ask for real data, which a new machine does not have;
# `make paper` runs the tests of gcnii_paper, the study, which stand apart;
# `make docs` builds the manual; `make outputs` and `make pictures` renew what it shows; `make hostile`
# runs thousands of hostile inputs; `make lock` pins the newest releases.
PYTHON ?= python3
RUN = .venv/bin/
PIP = $(RUN)python -m pip install --quiet --disable-pip-version-check -c constraints.txt

PYTEST = $(RUN)python -m pytest -n auto --dist worksteal

.PHONY: demo test data paper slow long mlflow docs outputs pictures hostile lock clean lint types browser database
.DELETE_ON_ERROR:

demo: .venv/ready
	$(RUN)gcnii demo

# Two at a time, since mypy has one process, and who downloads waits; the tests wait for them all.
test:
	$(MAKE) --jobs=2 .venv/ready-dev database types lint browser
	$(PYTEST) -m "not slow and not long" --ignore tests/paper

data: .venv/ready-dev
	$(PYTEST) -m "data and not slow and not long" --ignore tests/paper

paper: browser
	$(PYTEST) -m "not long" tests/paper

slow: .venv/ready-dev database
	$(PYTEST) -m "slow and not long" --ignore tests/paper

long: .venv/ready-dev database
	$(PYTEST) -m long

# MLflow takes an older importlib-metadata than the pinned one: an environment of its own, which uses
# the packages of the other.
mlflow: .venv/ready-dev
	test -x .venv/mlflow/bin/python || $(PYTHON) -m venv .venv/mlflow
	grep -v '^importlib-metadata==' constraints.txt > .venv/mlflow/constraints.txt
	$(RUN)python -c "import site, gcnii; print(site.getsitepackages()[0], \
	  gcnii.__path__[0] + '/..', sep='\n')" > .venv/mlflow/beside.pth
	cp .venv/mlflow/beside.pth .venv/mlflow/lib/python*/site-packages/
	.venv/mlflow/bin/python -m pip install --quiet -c .venv/mlflow/constraints.txt 'mlflow-skinny>=3'
	.venv/mlflow/bin/python -m pytest -n 0 tests/test_mlflow.py

lint: .venv/ready-dev
	$(RUN)ruff check .
	$(RUN)ruff format --check .

types: .venv/ready-dev
	$(RUN)mypy

browser: .venv/ready-dev
	$(RUN)python tests/support/chromium.py

database:
	$(PYTHON) tests/support/postgres.py

docs: .venv/ready-dev
	$(RUN)python -m sphinx -q -n -W --keep-going docs docs/_build/html
	@echo 'the manual: docs/_build/html/index.html'

# PAGES="docs/howto/judge.md …" renews these, and PICTURES="report …" these; else, all are renewed.
outputs: .venv/ready-dev
	$(RUN)python docs/outputs.py $(PAGES)

pictures: .venv/ready-dev browser
	$(RUN)python docs/pictures.py $(PICTURES)

hostile: .venv/ready-dev
	$(RUN)python tests/hostile/run.py --long

# Every distribution that gcnii[dev] brings into a new environment, with torch as it is pinned now;
# "+cpu" is left out of versions, because other machines have other builds.
lock:
	folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && run="$$folder/venv/bin/python -m pip" && \
	grep -e '^#' -e '^torch==' constraints.txt > "$$folder/pins" && \
	$(PYTHON) -m venv "$$folder/venv" && \
	$$run install --quiet -c "$$folder/pins" torch && \
	$$run install --quiet -c "$$folder/pins" '.[dev]' && \
	$$run freeze --all --exclude pip --exclude gcnii > "$$folder/found" && \
	grep '^#' constraints.txt > "$$folder/constraints" && \
	awk -F== '{ name = tolower($$1); gsub(/[-_.]+/, "-", name); sub(/[+].*/, "", $$2); \
	  print name "==" $$2 }' "$$folder/found" | LC_ALL=C sort >> "$$folder/constraints" && \
	cp "$$folder/constraints" constraints.txt

# torch first and alone, so that its pinned build is installed before a dependency asks for another.
.venv/torch: pyproject.toml constraints.txt
	test -x .venv/bin/python || $(PYTHON) -m venv .venv
	$(PIP) torch
	touch $@

.venv/ready: .venv/torch
	$(PIP) -e .
	touch $@

.venv/ready-dev: .venv/torch
	$(PIP) -e '.[dev]'
	touch .venv/ready $@

clean:
	rm -rf .venv runs docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis
