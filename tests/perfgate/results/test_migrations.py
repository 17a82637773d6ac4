"""Runs of older schemas stay readable, and their files stay as they are."""

from pathlib import Path

import pytest

from perfgate.errors import NewerSchema, UnknownSchema, WrongField
from perfgate.results.migrations import MIGRATIONS, migrated
from perfgate.results.record import SCHEMA
from perfgate.results.store import read

FOLDER = Path(__file__).parent


def test_each_released_schema_has_a_file():
    """Who adds a schema keeps a file of the old one."""
    assert {file.name for file in FOLDER.glob("schema-*.json")} == {f"schema-{n}.json" for n in range(1, SCHEMA + 1)}


def test_a_run_of_schema_1_is_readable():
    """With its values, forever."""
    run = read(FOLDER / "schema-1.json")
    amp, plain = run.records
    assert (run.stamp, run.status, run.commit["id"][:12]) == ("20260314T092653589Z", "complete", "4f0c2a9be1d7")
    assert run.machine.hard == {"cpu": "testcpu", "cores": "2", "architecture": "x86_64"}
    assert amp.measurement("wall_seconds").values[:2] == (0.01275, 0.01225)
    assert amp.measurement("speedup").values == (1.52, 1.49, 1.5, 1.51)
    assert plain.measurement("operators").table == {"aten::mm(float32)": 6, "aten::add_(float32)": 52}


def test_an_old_block_goes_through_every_step(monkeypatch):
    """In their order, and the block that was read is not changed."""
    monkeypatch.setitem(MIGRATIONS, SCHEMA - 2, lambda block: {**block, "path": ["first"]})

    def second(block):
        block["path"].append("second")
        return block

    monkeypatch.setitem(MIGRATIONS, SCHEMA - 1, second)
    old = {"schema": SCHEMA - 2, "kept": [1]}
    assert migrated(old, "run.json") == {"schema": SCHEMA, "kept": [1], "path": ["first", "second"]}
    assert old == {"schema": SCHEMA - 2, "kept": [1]}


def test_the_present_schema_needs_no_step():
    """Its block is used as it is."""
    block = {"schema": SCHEMA}
    assert migrated(block, "run.json") is block


@pytest.mark.parametrize("schema", [0, -1])
def test_a_schema_that_never_was_is_named(schema):
    """It is not guessed at."""
    with pytest.raises(UnknownSchema, match=rf"run\.json: schema {schema} cannot be brought up to schema {SCHEMA}"):
        migrated({"schema": schema}, "run.json")


def test_a_newer_schema_asks_for_an_update():
    """Its fields may mean something else."""
    with pytest.raises(NewerSchema, match="written by a newer perfgate"):
        migrated({"schema": SCHEMA + 1}, "run.json")


@pytest.mark.parametrize("block", [{}, {"schema": "1"}, {"schema": True}, {"schema": None}, {"schema": 1.0}])
def test_a_schema_that_is_no_integer_is_named(block):
    """True is no number."""
    with pytest.raises(WrongField, match=r"field perfgate\.schema: integer expected"):
        migrated(block, "run.json")


def test_a_damaged_old_block_is_no_traceback(monkeypatch):
    """A step meets a block that nobody has checked."""
    monkeypatch.setitem(MIGRATIONS, SCHEMA - 1, lambda block: {"records": block["gone"]["x"]})
    with pytest.raises(WrongField, match="cannot be brought up from schema"):
        migrated({"schema": SCHEMA - 1}, "run.json")
