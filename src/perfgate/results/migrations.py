"""Reading what older versions of perfgate saved: a block is brought up to date in memory, its file stays as it is.

Each released schema has a file in ``tests/perfgate/results/``, ``schema-<number>.json``, that must stay readable.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from perfgate.errors import NewerSchema, UnknownSchema, WrongField
from perfgate.results.record import SCHEMA

Block = dict[str, Any]
"""The ``perfgate`` block of a results file, as parsed and not yet checked."""

MIGRATIONS: dict[int, Callable[[Block], Block]] = {}
"""By schema, what makes a block of the next one; there is one schema so far."""


def migrated(block: Block, source: str) -> Block:
    """The block in the present schema; ``block`` itself is not changed.

    Raises:
        NewerSchema: where it was written by a newer perfgate.
        UnknownSchema: where no migration begins at its schema.
        WrongField: where the schema is no integer, or a field that a migration needs is missing or wrong.
    """
    schema = block.get("schema")
    if not isinstance(schema, int) or isinstance(schema, bool):
        got = "nothing" if schema is None else type(schema).__name__
        raise WrongField(f"{source}: field perfgate.schema: integer expected, got {got}: restore the file from git")
    if schema > SCHEMA:
        raise NewerSchema(
            f"{source}: schema {schema} was written by a newer perfgate than this (schema {SCHEMA}): update perfgate"
        )
    for number in range(schema, SCHEMA):
        step = MIGRATIONS.get(number)
        if step is None:
            raise UnknownSchema(
                f"{source}: schema {schema} cannot be brought up to schema {SCHEMA}, no perfgate saved such runs: "
                "restore the file from git, or remove it"
            )
        try:
            block = {**step(copy.deepcopy(block)), "schema": number + 1}
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise WrongField(f"{source}: cannot be brought up from schema {number}: {error!r}: is it whole?") from error
    return block
