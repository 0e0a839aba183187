# What people type. `make help` lists it.
PYTHON ?= python3
VENV := .venv
STORY ?= en
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help demo test test-fast check docs install bench clean
.DEFAULT_GOAL := help

help:                  ## this list
	@grep -hE '^[a-z-]+: .*##|^[a-z-]+:  +##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 14

demo: $(READY)         ## a consumer freezes, the coordinator dies, a link is slow: told as it happens (STORY=zh tells it in Chinese)
	@$(BIN)/seesaw run scenarios/demo.yaml --on sim --lang $(STORY)

test: $(READY)         ## everything: style, types, tests, coverage
	@$(MAKE) --no-print-directory check
	$(BIN)/python -m pytest -m "not slow" --cov --cov-report=term
	$(BIN)/python -m pytest -m slow

test-fast: $(READY)    ## the tests for every day
	$(BIN)/python -m pytest -m "not slow" -x

check: $(READY)        ## style and types
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(READY)        ## how fast it is, beside what a real broker and Kafka's own classes need
	$(BIN)/python -m benchmarks.coordinator
	$(BIN)/python -m benchmarks.simulation
	$(BIN)/python -m benchmarks.assignors

docs: $(READY)         ## the pages and pictures that are made from the code
	$(BIN)/python docs/generate.py

install: $(READY)      ## the virtual environment, with everything in it
	@echo "seesaw is at $(BIN)/seesaw"

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed, and $(PYTHON) is older: make PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null \
	  || { echo "Python's venv module is missing. On Debian or Ubuntu: apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[all]'
	@touch $@

clean:                 ## remove what make has made
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
