# Two commands do everything on a fresh machine that has Python 3.11 or newer and make:
#   make run [URL=https://example.org/]
#   make test

VENV ?= .venv
RUN = $(VENV)/.ready-run
SERVE = $(VENV)/.ready-serve
DEV = $(VENV)/.ready-dev

# Unexpanded, and through the environment: a URL may hold $, & and quotes.
export RUN_URL = $(value URL)

.PHONY: help run serve test chaos bench lint lock docs clean

help:
	@echo "make run              see fresh, stale and failed answers on a sample site"
	@echo "make run URL=...      capture that page"
	@echo "make serve            serve the archive on http://127.0.0.1:8080"
	@echo "make test             run the tests"
	@echo "make chaos            kill 200 processes at random moments, send 10,000 odd requests, and look for harm"
	@echo "make bench            measure against the peers, and what the documents promise; takes half an hour"
	@echo "make lint             check style and types"
	@echo "make docs             bring the generated parts of docs/ up to date"
	@echo "make lock             lock newer dependencies"
	@echo "make clean            remove what the others made"

$(RUN): pyproject.toml requirements/build.txt requirements/run.txt scripts/setup
	@sh scripts/setup "$(VENV)" run

$(SERVE): pyproject.toml requirements/build.txt requirements/serve.txt scripts/setup
	@sh scripts/setup "$(VENV)" serve

$(DEV): pyproject.toml requirements/build.txt requirements/dev.txt scripts/setup
	@sh scripts/setup "$(VENV)" dev

run: $(RUN)
	@if [ -n "$$RUN_URL" ]; then exec "$(VENV)/bin/pravda" capture -- "$$RUN_URL"; \
	else exec "$(VENV)/bin/pravda" demo; fi

serve: $(SERVE)
	@exec "$(VENV)/bin/pravda" serve

test: $(DEV)
	@"$(VENV)/bin/coverage" run -m pytest
	@"$(VENV)/bin/coverage" report --include='*/pravda/core/*' --fail-under=100 \
	|| { echo "make test: the tests pass, but they do not cover all of src/pravda/core" >&2; exit 1; }

chaos: $(DEV)
	@PRAVDA_CHAOS=200 "$(VENV)/bin/python" -m pytest tests/test_crash.py tests/test_server_openapi.py

bench: $(DEV)
	@for script in run lookup tree build service; do \
		echo "== benchmarks/$$script.py"; "$(VENV)/bin/python" "benchmarks/$$script.py" || echo "(a bound was passed)"; \
	done

lint: $(DEV)
	@"$(VENV)/bin/ruff" check .
	@"$(VENV)/bin/ruff" format --check .
	@"$(VENV)/bin/mypy"

docs: $(DEV)
	@"$(VENV)/bin/python" scripts/docs.py

lock:
	@sh scripts/lock

clean:
	rm -rf "$(VENV)" build dist htmlcov .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +
