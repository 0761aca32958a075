# Two commands do all the set-up on a fresh machine: `make demo` and `make test`.
# Every version the package claims, newest first.
CLAIMED := $(shell sed -n 's/.*Python :: \(3\.[0-9]*\)".*/\1/p' pyproject.toml | sort -rV)
# `python3`, or where that is too old the newest beside it that is not.
PYTHON ?= $(or $(shell for each in python3 $(CLAIMED:%=python%); do \
  $$each -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$each && break; done),python3)
# An environment that keeps Python from keeping what it has compiled would compile everything again for each command.
export PYTHONDONTWRITEBYTECODE :=
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# Running needs a hundredth of what testing needs.
DEMO   := .venv-demo
PAGE   := src/podqos/page/viewer.html

.PHONY: demo test check lint check-page types fast check-system test-versions golden bench bench-node viewer chromium helm dist wheels image image-archive release-notes lock clean

demo: $(DEMO)/.installed
	@$(DEMO)/bin/python tools/page.py
	@$(DEMO)/bin/podqos demo

# Everything: style, types, architecture, then the tests (fast ones first, also with the system's own Python). Slow ones wait
# most of the time, for a node or a browser: four at once keep two cores busy.
test: viewer chromium helm check check-system check-page
	$(BIN)/python -m pytest -n 4 --dist worksteal -m slow

# What a developer runs all the time: a few minutes.
check: lint
	@$(MAKE) --no-print-directory -j2 types fast

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	@$(call in_viewer,lint,npm run --silent lint)

# The types and the unit tests of the page.
check-page:
	@$(call in_viewer,types and unit tests,npm run --silent check && npm test --silent)

# Run something in viewer/, or say what is skipped without npm and its packages.
in_viewer = if ! command -v npm >/dev/null; then echo "skipped: $(1) of the page (npm is not installed)"; \
  elif [ ! -x viewer/node_modules/.bin/oxlint ]; then echo "skipped: $(1) of the page (make viewer installs what it needs)"; \
  else cd viewer && $(2); fi

# One core's work for half a minute: meanwhile the tests use the other.
types: $(STAMP)
	$(BIN)/mypy

fast: $(STAMP)
	$(BIN)/python -m pytest -n 2 -m "not slow" $(PYTEST_OPTIONS)

# Whoever has no other Python than the system's, perhaps an early patch release, gets the same answers. Two patch releases
# differ in how they parse, match patterns and open files: these tests read texts of people. Everything else computes values
# from values, and was tried with the first Python. Another minor version runs everything, and so does a release. Of drawn
# examples a few will do; so will plain assertions, which need not be compiled anew.
SYSTEM_PYTHON ?= /usr/bin/python3
READING := manifest $(patsubst %,kernel/test_%.py,broken_lines carriers oom_beginnings oom_reading oom_report) \
  $(patsubst %,cli/test_%.py,autopsy_kubectl files_of_others replaced_files written_files)
SYSTEM_VENV := .venv-system
VERSION := -c 'import platform; print(platform.python_version())'
check-system: $(STAMP)
	@system=$$($(SYSTEM_PYTHON) $(VERSION) 2>/dev/null); \
	skipped() { echo "skipped: fast tests with $(SYSTEM_PYTHON) ($$1)"; }; \
	if [ -z "$$system" ]; then skipped "there is none"; \
	elif [ "$$system" = "$$($(BIN)/python $(VERSION))" ]; then skipped "$$system, as in $(VENV)"; \
	elif ! $(SYSTEM_PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then skipped "$$system is older than 3.11"; \
	elif ! $(SYSTEM_PYTHON) -c 'from ensurepip import version' 2>/dev/null && [ "$$(id -u)" != 0 ]; then \
	  skipped "$$system cannot make virtual environments: sudo apt install python$${system%.*}-venv"; \
	else echo "fast tests with $(SYSTEM_PYTHON) ($$system)"; \
	  [ "$${system%.*}" = "$$($(BIN)/python $(VERSION) | cut -d. -f1,2)" ] && tests="$(READING:%=tests/%)"; \
	  PODQOS_EXAMPLES=10 $(MAKE) --no-print-directory fast VENV=$(SYSTEM_VENV) PYTHON=$(SYSTEM_PYTHON) \
	    PYTEST_OPTIONS="--assert=plain $$tests"; fi

# Before a release: the fast tests with every version the package claims, and the system's.
test-versions: READING :=
test-versions: check-system
	@missing=; for version in $(CLAIMED); do found=; \
	  for each in python$$version $${PYENV_ROOT:-$$HOME/.pyenv}/versions/$$version.*/bin/python3; do \
	    if $$each -c pass 2>/dev/null; then found=$$each; break; fi; done; \
	  if [ -z "$$found" ]; then missing="$$missing $$version"; continue; fi; \
	  echo "fast tests with $$found ($$($$found $(VERSION)))"; \
	  $(MAKE) --no-print-directory fast VENV=.venv-$$version PYTHON=$$found || exit 1; done; \
	if [ -n "$$missing" ]; then echo "not tried, because there is no such Python here:$$missing"; exit 1; fi

# What the shipped scenarios do, written down again: journals, timelines and pictures; the outputs that pages
# show. Read the difference.
golden: $(STAMP)
	$(BIN)/python tests/scenarios/record.py > /dev/null
	$(BIN)/python tests/outputs/record.py
	$(BIN)/python tests/documents/record.py

bench: $(STAMP) viewer
	$(BIN)/python -m compileall -q src
	$(BIN)/python bench/run.py
	@for script in place eviction cpu_model oom_selection survival check advise simulate blast cluster "ui --short"; do \
	  set -- $$script; echo; echo "== bench/$$1.py"; $(BIN)/python bench/$$1.py $$2 || exit 1; done

# The real node: needs root, cgroups and an hour and a half (soak and chaos take half an hour each).
bench-node: $(STAMP)
	@for script in node_race node_quiet node_adoption oom_victims rehearse node_soak node_chaos; do \
	  echo; echo "== bench/$$script.py"; $(BIN)/python bench/$$script.py || exit 1; done

# The page of `podqos ui` and of every --html. Without npm everything else works, and one line says that it is missing.
viewer:
	@$(PYTHON) tools/page.py --in-place

# The browser that the tests of the page use.
chromium:
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	  { apt-get -qq install --yes --no-install-recommends chromium >/dev/null \
	  || { apt-get -qq update && apt-get -qq install --yes --no-install-recommends chromium >/dev/null; }; }; } \
	|| echo "no chromium: the tests of the page will be skipped"

# The helm that the tests of charts use.
helm: $(STAMP)
	@tools/helm $(BIN)

$(STAMP): requirements.lock pyproject.toml
	@tools/environment $(PYTHON) $(VENV) requirements.lock
	@touch $@

$(DEMO)/.installed: requirements-run.lock pyproject.toml
	@tools/environment $(PYTHON) $(DEMO) requirements-run.lock
	@touch $@

# The archives of a release, and the manifest for krew.
dist: $(STAMP) viewer
	@test -s $(PAGE) || { echo "no release without the page: $(PAGE) is not built (\`make viewer\`, needs npm)" >&2; exit 1; }
	rm -rf dist
	$(BIN)/python -m hatchling build -t sdist -t wheel
	$(BIN)/python tools/krew.py dist

# What an image is made of: podqos and all it depends on, so that building one needs no network.
wheels: dist
	rm -rf dist/wheels
	$(BIN)/python -m pip wheel --quiet --wheel-dir dist/wheels "$$(ls dist/podqos-*.whl)[webhook]"

# A container image of webhook, exporter and guard, built by podman.
IMAGE ?= podqos
BASE ?= docker.io/library/python:$$($(BIN)/python $(VERSION) | cut -d. -f1,2)-slim
image: wheels
	podman build -f deploy/Containerfile -t $(IMAGE) --build-arg BASE=$(BASE) dist

# The same image as a file, without a container engine, a registry or root. ROOTFS is any root file system with the same Python,
# as a tar file; by default it is made from Debian's packages.
SUITE ?= bookworm
ROOTFS ?= build/rootfs-$(SUITE).tar
image-archive: wheels $(ROOTFS)
	@$(BIN)/python tools/image.py --name $(IMAGE) --rootfs $(ROOTFS) --wheels dist/wheels --output dist/podqos-image.tar

# The shell thaws what a guard had frozen if it is killed; schedules of CronJobs need time zones.
PACKAGES := base-files,dash,libpython3-stdlib,python3-minimal,tzdata
build/rootfs-$(SUITE).tar:
	@command -v mmdebstrap >/dev/null || { echo "no mmdebstrap to make a root file system with: install it" \
	  "(sudo apt install mmdebstrap), or give one with ROOTFS=FILE.tar" >&2; exit 1; }
	@mkdir -p build
	mmdebstrap --quiet --variant=extract --include=$(PACKAGES) $(addprefix --dpkgopt=path-exclude=/usr/share/,doc/* locale/* man/*) \
	  --format=tar $(SUITE) $@.part
	@mv $@.part $@

# What the changelog says about a release: make release-notes RELEASE=v1.2.3
RELEASE ?= unreleased
release-notes:
	@$(PYTHON) tools/release_notes.py $(RELEASE)

# The documentation as a site, built in an environment of its own. build/site/index.html opens without a server or a network.
SITE := .venv-docs
.PHONY: docs lock-docs
docs: $(SITE)/.installed
	$(SITE)/bin/python -m sphinx -q --fail-on-warning --keep-going -j auto -c docs/site -d build/site-pages . build/site
	@echo "open build/site/index.html"

$(SITE)/.installed: docs/site/requirements.lock
	@tools/environment $(PYTHON) $(SITE) docs/site/requirements.lock
	@touch $@

# A test builds the site, too.
test: $(SITE)/.installed

lock: lock-docs
lock-docs:
	uv pip compile docs/site/requirements.in $(LOCK) --upgrade -o docs/site/requirements.lock

# Renew the pins (needs uv). Those for running are the same: podqos without extras, and what installs it.
LOCK := --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate
lock:
	uv pip compile pyproject.toml --extra dev $(LOCK) --upgrade -o requirements.lock
	printf 'hatchling\neditables\n' | uv pip compile pyproject.toml - $(LOCK) -c requirements.lock --upgrade -o requirements-run.lock

clean:
	rm -rf .venv .venv-* $(PAGE) viewer/node_modules viewer/dist build dist bench/data .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
