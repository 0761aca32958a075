# Two commands do all the set-up on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
PAGE   := src/podqos/report/viewer.html

.PHONY: demo test check golden bench bench-node viewer chromium lock clean

demo: $(STAMP) viewer
	@$(BIN)/podqos demo

# Everything: style, types, architecture, then the tests (fast ones first).
test: viewer chromium check
	@if [ -d viewer/node_modules ]; then cd viewer && npm run --silent check; fi
	$(BIN)/python -m pytest -n 2 --dist loadfile -m slow

# What a developer runs all the time: a few minutes.
check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n 2 -m "not slow"

# What the shipped scenarios do, written down again: journals, timelines and pictures. Read the difference.
golden: $(STAMP)
	$(BIN)/python tests/scenarios/record.py > /dev/null

bench: $(STAMP)
	$(BIN)/python -m compileall -q src
	$(BIN)/python bench/run.py
	@for script in place eviction cpu_model oom_selection survival check simulate blast; do \
	  echo; echo "== bench/$$script.py"; $(BIN)/python bench/$$script.py || exit 1; done

# The real node: needs root, cgroups and an hour (the soak alone takes half of it).
bench-node: $(STAMP)
	@for script in node_race node_quiet node_adoption oom_victims rehearse node_soak; do \
	  echo; echo "== bench/$$script.py"; $(BIN)/python bench/$$script.py || exit 1; done

# The page of `podqos simulate --html`; without npm everything else works, and the command says what is missing.
viewer:
	@if command -v npm >/dev/null; then $(MAKE) --silent $(PAGE); else echo "no npm: $(PAGE) is not built"; fi \
	|| echo "the page could not be built (see above); everything but --html works"

$(PAGE): $(wildcard viewer/*.json viewer/*.js viewer/index.html viewer/src/*)
	cd viewer && npm ci --silent && npm run --silent build -- --logLevel warn
	cp viewer/dist/index.html $@

# The browser that the tests of the page use.
chromium:
	@if ! command -v chromium >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get -qq install --yes --no-install-recommends chromium >/dev/null \
	  || { apt-get -qq update && apt-get -qq install --yes --no-install-recommends chromium >/dev/null; } \
	  || echo "no chromium: the tests of the page will be skipped"; fi

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
	rm -rf $(VENV) $(PAGE) viewer/node_modules viewer/dist build dist bench/data .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
