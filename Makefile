# Two commands on a fresh machine: `make serve` and `make test`. `make help` lists the rest.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help compiled serve test soak fuzz check browser conformance clients format bench docs clean

help: ## List the commands
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(VENV)/.serve: setup.cfg pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --config-settings editable_mode=compat --editable .
	touch $@

$(VENV)/.test: $(VENV)/.serve
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --config-settings editable_mode=compat --editable '.[test,check,agent]'
	touch $@

# Compiled ahead, because an environment that writes no bytecode would compile 200 files at every start.
compiled: $(VENV)/.serve
	$(BIN)/python -m compileall -q a2mcp actors

serve: compiled ## Run the daemon in the foreground
	$(BIN)/a2mcp serve

# Where no bytecode is written, each worker would compile every test.
test: export PYTHONDONTWRITEBYTECODE =
test: $(VENV)/.test compiled ## Run the whole test suite
	@# One lane after the other, and in each as many at a time as it bears; in the first, who has nothing left takes over. Exit code 5: there is no such test in it.
	@failed=0; set -x; \
	$(BIN)/python -m pytest -n 4 --dist worksteal -m light $(ARGS) || [ $$? = 5 ] || failed=1; \
	$(BIN)/python -m pytest -n 3 -m heavy $(ARGS) || [ $$? = 5 ] || failed=1; \
	$(BIN)/python -m pytest -n 0 -m alone $(ARGS) || [ $$? = 5 ] || failed=1; \
	{ set +x; } 2>/dev/null; exit $$failed

soak: $(VENV)/.test compiled ## Run the long form of the soak and fault tests and write docs/benchmarks/soak-DATE.md
	A2MCP_TEST_LONG=1 A2MCP_SOAK_PAGES=docs/benchmarks $(BIN)/python -m pytest -n 0 tests/soak $(wildcard tests/faults) $(ARGS)

check: $(VENV)/.test ## Lint, types, import contracts, docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q tests/test_docs.py tests/test_architecture.py

browser: $(VENV)/.test ## Install what the tests in a browser need beside a Chromium
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --config-settings editable_mode=compat --editable '.[browser]'

conformance: $(VENV)/.test ## Run the official conformance suite in both eras
	$(BIN)/python tests/conformance/run.py $(ARGS)

clients: $(VENV)/.test ## Install other people's MCP clients for `make test` to drive (ARGS=all for the big ones, too)
	$(BIN)/python tests/clients/client_envs.py $(ARGS)

format: $(VENV)/.test ## Put the code into the one form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

fuzz: $(VENV)/.test ## Fuzz our own parsers, each for a minute (ARGS="--seconds 600 request" for one of them, for ten)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --config-settings editable_mode=compat --editable '.[fuzz]'
	$(BIN)/python tests/fuzz/run.py $(ARGS)

bench: $(VENV)/.test compiled ## Measure against the peers and write docs/benchmarks/
	$(BIN)/python -m benchmarks $(ARGS)

docs: $(VENV)/.test ## Write the generated part of docs/reference
	$(BIN)/python -m a2mcp.reference docs/reference

clean: ## Remove what was built or installed here
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .fuzz benchmarks/.peers tests/conformance/.node tests/clients/.envs
