"""Two histories side by side, step by step."""

from typing import TYPE_CHECKING, Any

from evalkit.io import Column, frame
from evalkit.steps.format import DEFAULTS, Options
from evalkit.steps.jsonable import to_jsonable
from evalkit.steps.table import steps_df

if TYPE_CHECKING:
    import pandas as pd


def compare_histories(a: Any, b: Any, options: Options = DEFAULTS) -> "pd.DataFrame":
    """Put the steps of two histories side by side.

    Steps are paired by function and parameters; of repeated ones the last attempt of each run counts, and the n-th of
    one history is paired with the n-th of the other.

    Parameters
    ----------
    a, b : str, path, frame of steps, or list of records
        With one history each, or several taken together.

    Returns
    -------
    DataFrame
        The columns of `COMPARISON_COLUMNS`: change (same, fixed, broken, changed, only in a, only in b), then verdict,
        attempts, truncated and total_significant of both. In the order of a, then what only b has.
    """
    rows = [_by_call(_steps_of(x, options)) for x in (a, b)]
    keys = list(dict.fromkeys([*rows[0], *rows[1]]))
    return frame([_pair(key, rows[0].get(key), rows[1].get(key)) for key in keys], COMPARISON_COLUMNS)


COMPARISON_COLUMNS = (
    Column("change", "str", "same, fixed, broken, changed, only in a, only in b"),
    Column("function_name", "str", "function of the step"),
    *(
        Column(f"{name}_{side}", dtype, f"{meaning} in {side}")
        for name, dtype, meaning in (
            ("verdict", "str", "how the step ended"),
            ("attempts", "int?", "attempts"),
            ("truncated", "bool?", "stored text is cut"),
            ("total_significant", "int?", "significant terms"),
        )
        for side in "ab"
    ),
    Column("run", "int", "1 for the first run of the call, 2 for the second"),
    Column("cell_type", "str", "cell type the step is about"),
)


def _steps_of(source: Any, options: Options) -> "pd.DataFrame":
    return source if hasattr(source, "columns") else steps_df(source, options)


def _by_call(steps: "pd.DataFrame") -> dict[tuple, dict[str, Any]]:
    """Index the last attempt of each run of a call by function, parameters and number of the run."""
    out: dict[tuple, dict[str, Any]] = {}
    runs: dict[tuple, int] = {}
    for row in to_jsonable(steps):
        call = (row["function_name"], row["parameters"])
        runs[call] = runs.get(call, 0) + (1 if row["attempt"] == 1 else 0)
        out[(*call, runs[call])] = row
    return out


def _pair(key: tuple, a: dict | None, b: dict | None) -> dict[str, Any]:
    one = a or b or {}
    row = {"function_name": key[0], "cell_type": one["cell_type"], "run": key[2], "change": _change(a, b)}
    for side, step in (("a", a), ("b", b)):
        if step is not None:
            shown = {"attempts": step["attempt"], **{k: step[k] for k in ("verdict", "truncated", "total_significant")}}
            row |= {f"{name}_{side}": value for name, value in shown.items()}
    return row


def _change(a: dict | None, b: dict | None) -> str:
    if a is None or b is None:
        return "only in b" if a is None else "only in a"
    if a["verdict"] == b["verdict"]:
        return "same"
    if b["verdict"] == "success":
        return "fixed"
    return "broken" if a["verdict"] == "success" else "changed"
