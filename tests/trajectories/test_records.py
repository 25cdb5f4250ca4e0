"""The declared runs of `records` have the columns of the tables, with their types."""

from dataclasses import fields
from datetime import datetime
from typing import get_type_hints

from evalkit.kinds import RUN_COLUMNS
from evalkit.trajectories.records import LOGGED, Run
from evalkit.trajectories.table import RUNS, TABLES

TYPES = {"int?": int, "float": float, "time": datetime}  # by type of column; the others are texts


def test_runs_have_every_column_of_records_with_its_type():
    assert set(LOGGED) == {"source", *(column.name for column in RUNS)}
    types = get_type_hints(Run)
    for column in RUNS:
        expected = TYPES.get(column.dtype, str)
        assert types[column.name] in (expected, expected | None), column.name


def test_runs_have_every_column_of_the_frame_that_only_this_kind_has():
    common = {column.name for column in RUN_COLUMNS}
    assert {column.name for column in TABLES["runs"]} - common <= {one.name for one in fields(Run)}
