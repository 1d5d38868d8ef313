# Everything a newcomer needs: `make run`, `make test`. Needs Python 3.11 or newer; the rest is set up by itself.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
YES ?=
export YES

.PHONY: run demo test quick check setup full bench faults screenshots locale format clean

run: setup
	@packaging/run.sh $(BIN)

demo: setup
	$(BIN)/desktop-host demo $(if $(MODEL),--model $(MODEL))

setup:
	@PYTHON="$(PYTHON)" packaging/setup.sh $(VENV)

test: setup check
	packaging/test.sh $(BIN)

quick: setup check
	QT_QPA_PLATFORM=offscreen $(BIN)/python -m pytest -q -m "not live and not slow"

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python packaging/compile_locale.py --check

full: setup check
	DESKTOP_HOST_FULL=1 packaging/test.sh $(BIN)

bench: setup
	QT_QPA_PLATFORM=offscreen $(BIN)/python tests/bench/run.py

# Kill -9 at random points; ends with one line of JSON. POINTS=200 for more.
faults: setup
	$(BIN)/python tests/faults/kill_points.py $(if $(POINTS),--points $(POINTS))

screenshots: setup
	QT_QPA_PLATFORM=offscreen $(BIN)/python packaging/screenshots.py $(or $(DIR),screenshots)

locale: setup
	$(BIN)/python packaging/compile_locale.py

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .tools .mypy_cache .ruff_cache .pytest_cache build dist
