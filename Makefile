# The two commands of a fresh clone: `make report` and `make test`. Each makes .venv first; all they need is Python 3.11 or newer.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready

.PHONY: report test lint samples clean

report: $(READY)  ## every report of params/ on the samples, as HTML in reports/
	$(BIN)/evalkit report

test: lint  ## everything CI runs: style, layers, types, unit tests, notebooks, pages in a browser
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

samples: $(READY)  ## the sample data anew; those of steps need scanpy and gseapy too (evalkit/samples/make_steps.py)
	$(BIN)/python -m evalkit.samples.make_mindcraft
	$(BIN)/python -m evalkit.samples.make_crafter

clean:
	rm -rf .venv reports .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "evalkit needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $@
