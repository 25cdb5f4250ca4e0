"""The declared runs of `records` have the columns of the tables, in their order and with their types."""

from dataclasses import fields
from datetime import datetime
from typing import get_type_hints

from evalkit.trajectories.records import LOGGED, Run
from evalkit.trajectories.table import RUNS, TABLES

TYPES = {"int?": int, "float": float, "time": datetime}  # by type of column; the others are texts


def test_runs_begin_with_the_columns_of_records_with_their_types():
    assert tuple(one.name for one in fields(Run))[: len(LOGGED)] == LOGGED
    types = get_type_hints(Run)
    for column in RUNS:
        expected = TYPES.get(column.dtype, str)
        assert types[column.name] in (expected, expected | None), column.name


def test_runs_have_every_column_of_the_frame():
    assert {column.name for column in TABLES["runs"]} <= {one.name for one in fields(Run)}
