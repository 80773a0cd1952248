# Everything a newcomer or CI runs. Needs Python >= 3.11 with venv, git and make; the
# rest is fetched into .tools and .venv, pinned by hash in requirements/.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$p" && break; done)
UV := .tools/bin/uv
BIN := .venv/bin
ARGS ?=
SEED ?=

PROJECTS := $(wildcard libs/*/pyproject.toml services/*/pyproject.toml)
FOLDERS := $(patsubst %/pyproject.toml,%,$(PROJECTS))
SOURCES := $(FOLDERS:%=%/src)
BENCHES = $(patsubst bench/%.py,%,$(shell grep -ls '__main__' bench/*.py))

# One virtual environment: ours, whatever is active in the caller's shell.
unexport VIRTUAL_ENV PYTHONPATH PYTHONHOME
export UV_PYTHON_DOWNLOADS := never
export UV_HTTP_TIMEOUT ?= 180
# A machine that reaches its packages through a mirror tells pip; uv asks there too.
ifdef PIP_INDEX_URL
export UV_DEFAULT_INDEX ?= $(PIP_INDEX_URL)
endif

INSTALL := $(UV) pip install --quiet --python $(BIN)/python --compile-bytecode
# What is editable is not compiled by the installer; start-up time is a promise.
INSTALL_OURS := $(INSTALL) --no-deps --no-build-isolation $(FOLDERS:%=-e %) && \
	$(BIN)/python -m compileall -q $(SOURCES)
EXPORT := $(UV) export --quiet --locked --no-header --no-annotate --no-emit-workspace

.PHONY: help setup demo test check lint types contracts quick up bench sim soak proto \
	publishers roles requirements format clean

help: ## list every target
	@awk -F ':.*## ' '/^[a-z][a-z%-]*:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

setup: .venv/.dev ## fetch tools and libraries, install everything editable

demo: .venv/.run ## train a small model on two nodes, kill a rank, watch it resume
	$(BIN)/tm demo $(ARGS)

test: .venv/.dev ## run every test but the soak (ARGS="tests/unit -x" narrows it)
	$(BIN)/pytest -m "not soak" $(ARGS)

check: lint types contracts quick ## lint, types, contracts and the quick tests

lint: .venv/.dev ## ruff: rules and format
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: .venv/.dev ## basedpyright, then mypy as second opinion
	$(BIN)/basedpyright
	$(BIN)/mypy

roles: .venv/.dev ## write docs/roles.md from the table of roles and actions again
	$(BIN)/python -m tools.generate_roles $(ARGS)

proto: .venv/.dev ## write the schemas, samples and tables of proto/ again
	$(BIN)/python -m tools.generate_contract $(ARGS)

contracts: .venv/.dev ## import-linter: who may import whom
	$(BIN)/lint-imports --no-logo

quick: .venv/.dev ## tests that need nothing and take seconds
	$(BIN)/pytest -q $(wildcard tests/tidy tests/unit tests/contract) $(ARGS)

format: .venv/.dev ## let ruff mend what it can
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

publishers: ## fetch what the example of a publisher in Node.js needs
	npm ci --no-audit --no-fund --prefix examples/publishers/node

up: .venv/.run ## start the whole stack on this machine (Ctrl-C stops it)
	$(BIN)/tm up $(ARGS)

bench: .venv/.dev ## run every benchmark in turn, results in bench/results
	@failed=; for name in $(BENCHES); do echo "== $$name"; \
		$(BIN)/python -m "bench.$$name" || failed="$$failed $$name"; done; \
	if [ -n "$$failed" ]; then echo "failed:$$failed"; exit 1; fi

bench-%: .venv/.dev ## run one benchmark, as in make bench-startup
	$(BIN)/python -m bench.$(subst -,_,$*) $(ARGS)

sim: .venv/.dev ## simulate all services on virtual time (SEED=20 repeats one run)
	$(if $(SEED),TM_SIM_SEED=$(SEED)) $(BIN)/pytest tests/simulation -m "not soak" $(ARGS)

soak: .venv/.dev ## thousands of simulation seeds and other long tests
	$(BIN)/pytest -m soak $(ARGS)

requirements: $(UV) ## resolve again and write requirements/*.txt with hashes
	$(UV) lock $(ARGS)
	$(EXPORT) --no-default-groups --group build -o requirements/run.txt
	$(EXPORT) -o requirements/dev.txt
	$(UV) pip compile --quiet --universal --generate-hashes --no-header --no-annotate \
		requirements/tools.in -o requirements/tools.txt
	@if grep -n '://' requirements/*.txt; then echo "a host is named above"; exit 1; fi

clean: ## remove .venv, .tools and caches; data of `tm up` stays
	rm -rf .venv .tools .pytest_cache .ruff_cache .mypy_cache .hypothesis \
		.import_linter_cache
	find libs services tests bench examples -name __pycache__ -prune -exec rm -rf {} +

# ------------------------------------------------------------------ what setup makes

$(UV): requirements/tools.txt
	@if [ -z "$(PYTHON)" ]; then echo "Python 3.11 or newer is needed: \
install it, or name one with make PYTHON=/path/to/python"; exit 1; fi
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) has no \
venv module: install it (Debian and Ubuntu: apt install python3-venv)"; exit 1; }
	"$(PYTHON)" -m venv .tools
	.tools/bin/python -m pip install --quiet --disable-pip-version-check \
		--require-hashes -r requirements/tools.txt
	@touch $@

.venv/bin/python: | $(UV)
	$(UV) venv --quiet --allow-existing --python .tools/bin/python .venv

# The demo needs no linters; `make setup` adds them to the same environment.
.venv/.run: requirements/run.txt $(PROJECTS) | .venv/bin/python
	$(INSTALL) --require-hashes -r requirements/run.txt
	$(INSTALL_OURS)
	-$(BIN)/python -m compileall -q $(SOURCES)
	@touch $@

.venv/.dev: requirements/dev.txt .venv/.run
	$(INSTALL) --require-hashes -r requirements/dev.txt
	@touch $@
