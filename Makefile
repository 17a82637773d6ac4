# Two commands, which set up everything they need: make bench, make test.
PYTHON ?= python3
TOX := .venv/bin/tox

.PHONY: bench test clean

bench: $(TOX)  ## measure every optimization on this machine and compare with its last run
	$(TOX) run -e bench

test: $(TOX)  ## lint, types, tests, and one round of every CPU benchmark
	$(TOX) run -e tests

$(TOX):
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install --quiet --disable-pip-version-check "tox>=4.28" "tox-uv>=1.25"

clean:  ## remove what the commands set up; saved runs stay
	rm -rf .venv .tox .mypy_cache .pytest_cache .ruff_cache
