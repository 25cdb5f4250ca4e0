# The two commands of a fresh clone: `make report` and `make test`. Each makes what it needs of .venv first; all they
# need is Python 3.11 or newer.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
# without bytecode, each of the hundreds of processes that the tests start would take a second longer
unexport PYTHONDONTWRITEBYTECODE

.PHONY: report test lint docs samples clean

report: .venv/reports-ready  ## every report of params/ on the samples, as HTML in reports/
	$(BIN)/evalkit report

test: lint  ## everything CI runs: style, layers, types, unit tests, the site, notebooks, pages in a browser
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: .venv/test-ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

docs: .venv/test-ready  ## the site, in site/; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

samples: .venv/test-ready  ## the sample data anew; those of steps need the extra samples (tools/samples/steps.py)
	$(BIN)/python -m tools.samples.mindcraft
	$(BIN)/python -m tools.samples.crafter

clean:
	rm -rf .venv reports site .pytest_cache .ruff_cache .hypothesis .import_linter_cache

.venv/reports-ready: pyproject.toml | .venv/bin/python
	$(PIP) --editable .
	touch $@

.venv/test-ready: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) --constraint constraints.txt --editable '.[test]'
	touch $@ .venv/reports-ready

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "evalkit needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv .venv
