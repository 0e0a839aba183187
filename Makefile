# What people type. `make help` lists it.
PYTHON ?= python3
VENV := .venv
STORY ?= en
BIN := $(VENV)/bin
FAST := build/compiled
READY := $(VENV)/.ready

.PHONY: help demo test test-fast check docs install bench bench-compiled compiled clean
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

bench-compiled: compiled  ## the same of the simulator, with the machines compiled
	cd $(FAST) && $(CURDIR)/$(BIN)/python -m benchmarks.simulation

# Modules of messages, settings and tables stay as they are: they are data.
compiled: $(READY)     ## the machines as machine code, in build/compiled: the same bytes in two thirds of the time
	@command -v $${CC:-cc} >/dev/null || { echo "A C compiler is needed. On Debian or Ubuntu: apt-get install gcc"; exit 1; }
	@$(BIN)/python -c 'import setuptools' 2>/dev/null || $(BIN)/pip install --quiet setuptools
	rm -rf $(FAST) && mkdir -p $(FAST) && cp -r cluster scenarios seesaw benchmarks $(FAST)
	cd $(FAST) && MYPYC_OPT_LEVEL=2 $(CURDIR)/$(BIN)/mypyc --ignore-missing-imports \
	  $$(ls cluster/outbox.py cluster/ranges.py cluster/producer.py cluster/consumer/*.py cluster/coordinator/*.py \
	     cluster/broker/*.py cluster/sim/world.py cluster/sim/network.py cluster/sim/journal.py \
	     | grep -v '__init__\|printed\|states\|image\|records\|elections') > mypyc.log 2>&1 || { tail mypyc.log; exit 1; }
	@$(BIN)/seesaw run scenarios/demo.yaml --on sim --quiet --out $(FAST)/here > /dev/null
	@PYTHONPATH=$(FAST) $(BIN)/seesaw run scenarios/demo.yaml --on sim --quiet --out $(FAST)/there > /dev/null
	@diff -r $(FAST)/here/events $(FAST)/there/events && echo "the demo writes the same bytes, compiled or not"
	@echo "use it like this: PYTHONPATH=$(FAST) $(BIN)/seesaw soak --seeds 1000"

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
