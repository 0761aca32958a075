# Two commands do all the set-up on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: demo test check bench lock clean

demo: $(STAMP)
	@$(BIN)/podqos demo

# Everything: style, types, architecture, then the tests (fast ones first).
test: check
	$(BIN)/python -m pytest -n 2 --dist loadfile -m slow

# What a developer runs all the time: under a minute.
check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n 2 -m "not slow"

bench: $(STAMP)
	$(BIN)/python -m compileall -q src
	$(BIN)/python bench/run.py
	@for script in place eviction cpu_model oom_selection survival; do \
	  echo; echo "== bench/$$script.py"; $(BIN)/python bench/$$script.py || exit 1; done

# The virtual environment: exactly what the lock file names, hashes checked.
$(STAMP): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "podqos needs Python 3.11 or newer; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	$(BIN)/python -m compileall -q src  # start-up time counts, also where PYTHONDONTWRITEBYTECODE is set
	@touch $@

# Renew the pins (needs uv).
lock:
	uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 \
	  --generate-hashes --no-emit-index-url --no-header --no-annotate --upgrade -o requirements.lock

clean:
	rm -rf $(VENV) build dist bench/data .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
