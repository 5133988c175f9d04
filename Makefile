# The entry point: `make demo` and `make test` work in a fresh clone with only Python 3.11.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
export PIP_NO_INPUT := 1
# Python compiles what it imports; compiling all that is installed takes a minute of a fresh set-up.
export PIP_NO_COMPILE := 1
unexport PYTHONDONTWRITEBYTECODE
, := ,

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-versions fuzz mutants lint format docs bench bench-stats messages stubs measure constraints system clean

help:  ## Show the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.core  ## Set up, then audit built-in data: a report in less than a minute.
	@$(BIN)/evenhand demo --timings

test: $(VENV)/.dev $(if $(EVENHAND_INSTALL),$(VENV)/.spark) system  ## Set up, then run the tests, except those marked slow.
	@$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow" $(ARGS)

test-all: $(VENV)/.spark system  ## Run all tests, including the slow ones.
	@$(BIN)/python -m pytest -n auto --dist worksteal $(ARGS)

test-versions: $(VENV)/.dev  ## Run the tests of the library on the lowest and on the newest versions of its dependencies.
	@for end in lowest newest; do \
	  rm -rf build/$$end && $(PYTHON) -m venv build/$$end || exit 1; \
	  [ $$end = lowest ] && $(BIN)/python tools/lowest.py > build/versions.txt || : > build/versions.txt; \
	  build/$$end/bin/python -m pip --disable-pip-version-check -q install -c build/versions.txt -e '.[dev]' || exit 1; \
	  NUMBA_CACHE_DIR=build/$$end/numba build/$$end/bin/python -m pytest -n auto -m "not slow and not browser" $(ARGS) || exit 1; \
	done

fuzz: $(VENV)/.dev  ## Run the library on 100,000 generated tables, settings, files and commands; resumable.
	@NUMBA_NUM_THREADS=1 $(BIN)/python -m tests.fuzz $(ARGS)

mutants: $(VENV)/.dev  ## Change stats/ and core/ in 600 places each, and report which changes no test notices; resumable.
	@$(BIN)/python tools/mutants.py $(ARGS)

lint: $(VENV)/.dev  ## ruff, mypy (strict), import-linter, and no function that is too complex.
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python tools/measure.py --check

format: $(VENV)/.dev  ## Format the code.
	@$(BIN)/ruff check --fix-only -q .
	@$(BIN)/ruff format -q .

docs: $(VENV)/.docs  ## Build the documentation into docs/_build/html; warnings are errors.
	@$(BIN)/python docs/generate.py
	@$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

bench: $(VENV)/.dev  ## Measure speed and memory, beside peers; ARGS=--list shows the claims.
	@$(BIN)/python -m benchmarks.speed $(ARGS)

bench-stats: $(VENV)/.dev  ## Measure level, coverage and power by simulation, for docs/promises.md; resumable.
	@$(BIN)/python -m benchmarks.coverage $(ARGS)

messages: $(VENV)/.dev  ## Update the catalogues of translations from the English sentences, and compile them.
	@$(BIN)/python tools/messages.py

stubs: $(VENV)/.dev  ## Write the types of the public functions from the Specs, into src/evenhand/__init__.pyi.
	@$(BIN)/python tools/stubs.py

measure: $(VENV)/.dev  ## Size and shape of the package, as one table.
	@$(BIN)/python tools/measure.py $(ARGS)

constraints: $(VENV)/.dev $(VENV)/.docs  ## Write the versions installed here into constraints.txt.
	@$(BIN)/python tools/constraints.py

# Each stamp is made once, and again only when the dependencies change.
$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "evenhand needs Python 3.11 or newer; name one with: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Setting up $(VENV) (once) ..."
	@$(PIP) install -c constraints.txt -e '.$(if $(EVENHAND_INSTALL),[dev$(,)docs$(,)spark])'
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	@echo "Installing the development tools (once) ..."
	@$(PIP) install -c constraints.txt -e '.[dev,docs]'
	@touch $@

# Spark is large (500 MB): without EVENHAND_INSTALL its tests are skipped.
$(VENV)/.spark: $(VENV)/.dev
	@$(PIP) install -c constraints.txt -e '.[spark]'
	@touch $@

$(VENV)/.docs: $(VENV)/.dev
	@touch $@

# Programs that some tests need: installed only when asked for, as root on Debian; the tests say what is missing.
system:
	@[ -z "$$EVENHAND_INSTALL" ] || { \
	  PATH="$$PATH:$(lastword $(wildcard /usr/lib/postgresql/*/bin))"; missing=; \
	  for need in chromium:chromium initdb:postgresql ssh-keygen:openssh-client strace:strace java:default-jre-headless; do \
	    command -v "$${need%:*}" >/dev/null || missing="$$missing $${need#*:}"; \
	  done; \
	  ldconfig -p | grep -q libpangoft2-1.0 || missing="$$missing libpango-1.0-0 libpangoft2-1.0-0"; \
	  [ -z "$$missing" ] || { echo "Installing$$missing ..."; \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$missing >/dev/null; }; }

clean:  ## Remove what was built; keep the environment.
	@rm -rf build dist out evenhand-demo docs/_build docs/_generated docs/notebooks .pytest_cache .mypy_cache .ruff_cache
