# The two commands of a fresh clone: `make report` and `make test`. Each makes what it needs of .venv first; all they
# need is Python 3.11 or newer.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
# without bytecode, each of the hundreds of processes that the tests start would take a second longer
unexport PYTHONDONTWRITEBYTECODE

EXTRAS := crafter,distributed,excel,http,lab,labels,s3,workflow

.PHONY: help report test lint docs samples clean .style

help:  ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 10

report: .venv/reports-ready  ## all reports of params/ on the sample data, as HTML in reports/
	$(BIN)/evalkit report

# a worker waits a sixth of its time, for browsers, servers and the end of processes: one more than two cores
test: .style  ## everything that CI runs: style, layers, types, unit tests, the site, notebooks, pages in a browser
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

lint: .style  ## style, layers and types
	$(BIN)/mypy

# types are also one of the tests: a first run of mypy takes as long as ten of them, on one core
.style: .venv/test-ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

docs: .venv/test-ready  ## the documentation, in site/; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

samples: .venv/test-ready  ## make the sample data again (samples of steps: tools/samples/steps.py)
	$(BIN)/python -m tools.samples.mindcraft
	$(BIN)/python -m tools.samples.crafter

clean:  ## remove the environment and everything that was built
	rm -rf .venv reports site .pytest_cache .ruff_cache .hypothesis .import_linter_cache

.venv/reports-ready: pyproject.toml | .venv/bin/python
	$(PIP) --editable .
	touch $@

.venv/test-ready: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) --upgrade 'pip>=25.1'  # for --group
	$(PIP) --constraint constraints.txt --group test --editable '.[$(EXTRAS)]'
	touch $@ .venv/reports-ready

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "evalkit needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv .venv
