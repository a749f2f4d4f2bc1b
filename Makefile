# make demo   a first sweep, its table and its figure
# make test   the whole test suite
# make lint   style and types
# make notebooks  the notebooks as .ipynb, with their results, from the store of the demo
# make docs   what is generated from the code: docs/quantities.md, docs/model.md
# make pages  pages of results, each from the store of a shipped sweep
# make bench  how fast, and how much work a sample is

PYTHON ?= python3
VENV ?= .venv
WORKERS ?= 2
SPEC ?= sweeps/first_look.yaml
STORE ?= .cache/first_look.zarr
FIGURE ?= docs/first_look.png
TABLES ?= step_time allreduce_time slowest_clock_fraction scaling_efficiency limiting_reason

BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed

.PHONY: demo readme notebooks test lint docs pages bench constraints install clean
.DELETE_ON_ERROR:

install: $(INSTALLED)

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "'$(PYTHON)' is not Python 3.11 or newer: name one, as in make PYTHON=python3.12" >&2; \
	  exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@

demo: $(INSTALLED)
	mkdir -p $(dir $(STORE))
	$(BIN)/fabricarlo run $(SPEC) --out $(STORE)
	$(BIN)/fabricarlo show $(STORE) $(addprefix --output ,$(TABLES))
	$(BIN)/python bench/figure.py $(STORE) $(FIGURE)

# the table of results in README.md, from the store of the demo
readme: demo
	$(BIN)/python bench/figure.py $(STORE) $(FIGURE) --readme README.md

# the sweep of the plan is large: its samples are cut down here
notebooks: demo
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[notebooks]'
	$(BIN)/fabricarlo run notebooks/sweeps/plan.yaml --samples 16384 --out $(dir $(STORE))plan.zarr
	$(BIN)/jupytext --to ipynb notebooks/0*.py
	FABRICARLO_STORE=$(abspath $(STORE)) FABRICARLO_PLAN_STORE=$(abspath $(dir $(STORE)))/plan.zarr \
	  FABRICARLO_FIGURES=$(abspath $(dir $(FIGURE))) \
	  $(BIN)/jupyter-execute --inplace notebooks/0*.ipynb

test: $(INSTALLED)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

lint: $(INSTALLED)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright --pythonpath $(BIN)/python

docs: $(INSTALLED)
	$(BIN)/python docs/generate.py

# pages of results: runs their sweeps, which takes minutes each
pages: $(INSTALLED)
	$(BIN)/python -m docs.pages

bench: $(INSTALLED)
	$(BIN)/python -m bench.throughput
	$(BIN)/python -m bench.memory

# needs uv; the file holds versions only
constraints:
	{ echo '# Versions that `make` installs, for every supported Python and system. Made by `make constraints`.'; \
	  uv pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate \
	    --no-emit-index-url --no-emit-find-links --extra dev --extra s3 --extra notebooks \
	    pyproject.toml; } > constraints.new
	mv constraints.new constraints.txt

clean:
	rm -rf $(VENV) .cache dist .pytest_cache .ruff_cache .hypothesis
