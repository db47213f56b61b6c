# Every target sets up what it needs: .venv is made when it is missing or when the pins changed.
#
#   make demo    two RAG chains over examples/corpus, checked sentence by sentence
#   make test    all tests          make test ARGS="-m 'not slow'"   some
#   make check   formatting, lint, types, all tests
#   make bench   the benchmarks       make bench BENCH=benchmarks/speed.py ARGS=--quick   one of them
#   make clean   remove what these targets made in this folder
#
# PYTHON=/path/to/python3.11 chooses the interpreter that .venv is made from.

SHELL := /bin/sh
PY := .venv/bin/python
BENCH ?= $(sort $(wildcard benchmarks/[a-z]*.py))

export PYTHON
unexport PYTHONDONTWRITEBYTECODE
export OMP_NUM_THREADS ?= 2
# Waiting threads sleep: spinning ones make a busy machine many times slower.
export OMP_WAIT_POLICY ?= PASSIVE
export TOKENIZERS_PARALLELISM := false
export HF_HUB_OFFLINE := 1
export HF_HUB_DISABLE_TELEMETRY := 1
export LANGSMITH_TRACING := false

.PHONY: demo test check bench clean test-floor setup setup-floor

demo: setup
	@$(PY) -m examples.demo

test: setup
	@$(PY) -m pytest $(ARGS)

check: setup
	@command -v node >/dev/null || $(PY) -m pip install --quiet -r requirements/node.txt
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m pyright
	$(PY) -m pytest $(ARGS)

bench: setup
	@for file in $(BENCH); do \
		echo "== $$file $(ARGS)"; env -u OMP_WAIT_POLICY $(PY) $$file $(ARGS) || exit; done

# The adapters against the lowest supported frameworks. These import with deprecation warnings of
# their own under today's Python packages, so warnings are not errors here.
test-floor: setup-floor
	@.venv-floor/bin/python -m pytest -o filterwarnings=default tests/integrations $(ARGS)

setup:
	@sh requirements/setup.sh .venv dev

setup-floor:
	@sh requirements/setup.sh .venv-floor floor

clean:
	rm -rf .venv .venv-floor build dist .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
