# Every target works from a bare checkout with python3 and make: the virtual environment is made here.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO_STAMP := $(VENV)/.installed-for-the-demo

.PHONY: install demo test lint types bench docs fuzz clean

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[plots,report,dask,remote,hdf5,test,docs]'
	touch $(STAMP)

# The demo needs neither the plots nor the test tools, so it does not wait for them.
demo: $(DEMO_STAMP)
	$(BIN)/matchbound demo --report demo-report.html

$(DEMO_STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	test -e $(STAMP) || $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e . jinja2
	touch $(DEMO_STAMP)

test: install
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: install
	$(BIN)/ruff check src tests benchmarks studies fuzz docs
	$(BIN)/ruff format --check src tests benchmarks studies fuzz docs
	$(BIN)/lint-imports

types: install
	$(BIN)/mypy

bench: install
	$(BIN)/python benchmarks/run.py

fuzz: install
	$(BIN)/python fuzz/run.py --inputs 100000 --seed 13 --stops 50 --resumes 60

docs: install
	$(BIN)/python -m sphinx -W --keep-going -b html docs site

clean:
	rm -rf $(VENV) .venv-* site .pytest_cache .mypy_cache .ruff_cache .hypothesis
