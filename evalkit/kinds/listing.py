"""List runs of any kind by their common columns: which failed, and a table of them with their ids."""

from typing import TYPE_CHECKING, Any, Literal, get_args

from evalkit._words import counted_noun
from evalkit.io.text import plain
from evalkit.kinds.terminal import fit_table

if TYPE_CHECKING:
    import pandas as pd

    from evalkit.kinds.logs import Logs

Which = Literal["failed", "flagged", "all"]
CHOICES: tuple[Which, ...] = get_args(Which)
_ENDED_BADLY = frozenset(("error", "aborted", "failed"))
_COLUMNS = {
    "run_id": "run",
    "model_name": "model",
    "task_id": "task",
    "repetition": "repetition",
    "status": "status",
    "score": "score",
    "run_flags": "flags",
}
_WIDTH = 48  # characters of a cell


def choose(runs: "pd.DataFrame", which: Which) -> "pd.DataFrame":
    """Select runs by how they ended.

    Parameters
    ----------
    runs : DataFrame
        The first table of any kind.
    which : {"failed", "flagged", "all"}
        failed: runs without success or, if no run says whether it succeeded, those without a score or with a status
        that names an error. flagged: runs with a flag.

    Returns
    -------
    DataFrame
        Rows of `runs`.
    """
    if which == "all":
        return runs
    if which == "flagged":
        return runs[[len(flags) > 0 for flags in runs["run_flags"]]]
    if runs["is_successful"].notna().any():
        return runs[~runs["is_successful"].astype("boolean").fillna(False).to_numpy(dtype=bool)]
    return runs[(runs["score"].isna() | runs["status"].isin(_ENDED_BADLY)).to_numpy(dtype=bool)]


def list_runs(logs: "Logs", which: Which) -> str:
    """Format runs with their ids, as `evalkit show SOURCE --run` accepts them."""
    chosen = choose(logs.runs, which)
    rows = [
        {
            name: plain(in_words(run.get(column)) or "–", None if name == "run" else _WIDTH)
            for column, name in _COLUMNS.items()
        }
        for run in chosen.assign(status=chosen["status"].replace(logs.kind.statuses)).to_dict("records")
    ]
    used = [name for name in _COLUMNS.values() if any(row[name] != "–" for row in rows)]
    end = f"{counted_noun(len(chosen), 'run')} of {len(logs.runs)}, {which}"
    if not rows:
        return end
    table = fit_table([{name: row[name] for name in used} for row in rows], left=len(used), width=None)
    return f"{table}\n\n{end}; evalkit show {plain(logs.source)} --run RUN shows one"


def in_words(value: Any) -> str:
    """Format a cell of a frame; empty if it is missing."""
    if isinstance(value, (list, tuple)) or hasattr(value, "tolist"):
        items = value if isinstance(value, (list, tuple)) else value.tolist()
        if isinstance(items, (list, tuple)):
            return plain(", ".join(str(item).replace("_", " ") for item in items))
        value = items
    if value is None or value != value or str(value) in ("<NA>", "NaT"):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if hasattr(value, "isoformat"):
        return value.strftime("%Y-%m-%d %H:%M:%S %Z").strip()
    return plain(f"{value:.4g}" if isinstance(value, float) else value)
