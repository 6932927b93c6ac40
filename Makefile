# Daedal's commands. `make help` lists them; each sets up what it needs, also on a fresh machine.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
ARGS   ?=
T      ?=
BOARD  ?=
WAVES  ?=

FRAMEWORKS := build/frameworks

# A stamp for each of the two steps of the set-up: the locked packages, and Daedal itself as an editable install.
LOCKED    := $(VENV)/.locked
INSTALLED := $(VENV)/.installed

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup sim test test-fast test-full test-frameworks unit fuzz fuzz-texts mutate coverage lint bench synth bitstream bitstream-all wheel clean check-tools

help:  ## list the commands
	@echo "usage: make COMMAND"
	@sed -n 's/^\([a-z-]*\):.*## *\(.*\)/  \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 12

setup: $(INSTALLED)  ## make the environment in .venv (every command below does it as well)

sim: $(INSTALLED)  ## run PyTorch layers on the simulated RTL and compare [ARGS="--target emulator"]
	@$(BIN)/daedal sim $(ARGS)

test: $(INSTALLED)  ## run every test but those of test-full, on all cores [ARGS="-x"]
	@$(BIN)/python -m pytest --numprocesses auto --dist worksteal $(ARGS)

test-fast: $(INSTALLED)  ## lint, and tests without compiled RTL, proofs, random programs: compiler, driver, emulator [ARGS="-x"]
	@$(MAKE) --no-print-directory lint
	@$(BIN)/python -m pytest --fast --numprocesses auto --dist worksteal $(ARGS)

test-full: $(INSTALLED)  ## run tests of further configurations, then a billion operations on a lane's RTL, and all divisions [ARGS="--count 1000000 --processes 1"]
	@$(BIN)/python -m pytest -m full --numprocesses auto --dist worksteal
	@$(BIN)/python -m tests.full $(ARGS)

test-frameworks: $(INSTALLED)  ## run tests with TorchRec and with TensorFlow, each in an environment of its own [ARGS="-x"]
	@$(MAKE) --no-print-directory $(FRAMEWORKS)/torch/.installed $(FRAMEWORKS)/tensorflow/.installed
	@status=0; \
	$(FRAMEWORKS)/torch/bin/python -m pytest -m frameworks tests/frameworks --ignore=tests/frameworks/tensorflow $(ARGS) || status=1; \
	$(FRAMEWORKS)/tensorflow/bin/python -m pytest -m frameworks tests/frameworks/tensorflow $(ARGS) || status=1; \
	exit $$status

# An environment: what a file of requirements names, and behind it the locked packages of .venv.
$(FRAMEWORKS)/%/.installed: tests/frameworks/requirements-%.txt
	@$(BIN)/python -m venv --clear $(@D)
	@$(BIN)/python -c 'import site; print(*site.getsitepackages())' > \
	  "$$($(@D)/bin/python -c 'import site; print(*site.getsitepackages())')/locked.pth"
	@$(@D)/bin/python -m pip install --quiet --no-deps -r $<
	@touch $@

unit: $(INSTALLED)  ## run one file or directory of tests [T=tests/unit/test_x.py WAVES=1]
	@test -n "$(T)" || { echo "make unit needs T=, such as: make unit T=tests/unit/test_config.py" >&2; exit 2; }
	@WAVES=$(WAVES) $(BIN)/python -m pytest $(T) $(ARGS)

fuzz: $(INSTALLED)  ## run random programs until one fails or Ctrl-C [ARGS="--config edge --seed 7 --count 1000"]
	@$(BIN)/python -m tests.fuzz $(ARGS)

fuzz-texts: $(INSTALLED)  ## damage 60,000 texts for all that reads texts: none may hang or end in a traceback [ARGS="--count 1000 --seed 7"]
	@$(BIN)/python -m tests.fuzz.texts $(ARGS)

mutate: $(INSTALLED)  ## plant faults and see whether tests notice [ARGS="--draw 40 rtl --seed 7"]
	@$(BIN)/python -m tests.mutate $(ARGS)

coverage: $(INSTALLED)  ## run tests and count what they reach of RTL and Python [ARGS="tests/unit --missing"]
	@$(BIN)/python -m tests.cover $(ARGS)

lint: $(INSTALLED)  ## check style, format and types
	@status=0; for check in "ruff check" "ruff format --check --quiet" "mypy"; do \
	  echo "$$check"; $(BIN)/$$check || status=1; done; exit $$status

bench: $(INSTALLED)  ## measure workloads on the simulated RTL; tables, build/bench.json [ARGS="layers levels"]
	@mkdir -p build
	@$(BIN)/daedal bench --json build/bench.json $(ARGS)

synth: $(INSTALLED)  ## size and clock of every unit, compared with what was landed [ARGS="--fast" ARGS="--config edge --land"]
	@mkdir -p build
	@$(BIN)/python -m bench.synthesis --json build/synth.json $(ARGS)

bitstream: $(INSTALLED)  ## make a board's configuration file in build/BOARD [BOARD=ecpix5 ARGS="--no-route"]
	@test -n "$(BOARD)" || { echo "make bitstream needs BOARD=, such as: make bitstream BOARD=ecpix5" >&2; exit 2; }
	@$(BIN)/daedal bitstream --board $(BOARD) $(ARGS)

bitstream-all: $(INSTALLED)  ## make those of all boards; those that fail say why
	@status=0; for board in $$($(BIN)/python -c "from daedal.fpga.boards import BOARDS; print(*BOARDS)"); do \
	  $(BIN)/daedal bitstream --board $$board $(ARGS) || status=1; done; exit $$status

wheel: $(INSTALLED)  ## build a wheel in dist/
	@rm -rf build/lib build/bdist.*
	@$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

clean:  ## remove builds, caches and the environment
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(LOCKED): requirements.lock | check-tools
	@echo "Setting up $(VENV) (once: about 1.6 GB of packages, a minute or more)"
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -r requirements.lock
	@touch $@

$(INSTALLED): $(LOCKED) pyproject.toml daedal/version.py
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

check-tools:
	@for tool in $(PYTHON) g++ make perl; do command -v $$tool >/dev/null 2>&1 || { \
	  echo "Daedal needs $$tool. On Debian: apt install python3 python3-venv g++ make perl git" >&2; exit 1; }; done
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Daedal needs Python 3.11 or later, not $$($(PYTHON) --version)." \
	  "Name another one with: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "Daedal needs Python's venv module. On Debian: apt install python3-venv" >&2; exit 1; }
