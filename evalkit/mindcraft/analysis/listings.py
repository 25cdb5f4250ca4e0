"""List what a report shows: failed runs, flags, events, unused files, experiments and their progress."""

from collections.abc import Sequence

import pandas as pd

from evalkit.io.text import short_paths
from evalkit.mindcraft.analysis.rates import counted, is_stale
from evalkit.mindcraft.format import CompletionStatus
from evalkit.mindcraft.table import COUNT_COLUMNS, FLAGS
from evalkit.mindcraft.tasks import TaskDefinitions


def describe_runs(runs: pd.DataFrame, source: str) -> str:
    """Describe in a sentence or two what runs these are, and whether they are made-up samples."""
    if runs.empty:
        return "No runs of this kind."
    models, tasks = runs["model_name"].unique(), runs["task_id"].nunique()
    types = ", ".join(f"{n} {kind}" for kind, n in runs["task_type"].value_counts().items())
    text = f"{len(runs)} runs of {', '.join(models)} on {tasks} tasks ({types})."
    stale = int(is_stale(runs).sum())
    copies = f" Stale copies of other runs' logs among them, which count in no rate: {stale}."
    made = " These are made-up sample data: no model reached these scores."
    without = int((~runs["has_definition"]).sum())
    some = "" if without == len(runs) else f" for {without} of them"
    ids = f" No task definition was given{some}: what can be is read from the ids."
    return text + copies * bool(stale) + ids * bool(without) + made * source.startswith("samples:")


def with_difficulty(runs: pd.DataFrame) -> pd.DataFrame:
    """Make difficulty an ordered category: easy, medium, hard, any others, unknown."""
    values = runs["difficulty"].fillna("unknown").astype("object")
    order = dict.fromkeys(["easy", "medium", "hard", *sorted(set(values) - {"unknown"}), "unknown"])
    return runs.assign(difficulty=pd.Categorical(values, list(order), ordered=True))


def _listed(runs: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """Return the columns that identify runs, with further ones."""
    ids = ["model_name", "task_id", "repetition", "overall_completion_status"]
    return runs[[*ids, *columns, "source", "run_id"]].reset_index(drop=True)


def failed_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """List the runs without full success, broken ones first: their task, how they ended, where they are.

    Stale copies, which are not the result of their run, are left out; see `stale_copies`.
    """
    runs = counted(runs)
    order = [CompletionStatus.LOG_FILE_ERROR, CompletionStatus.NO_SCORE_LOGGED, CompletionStatus.TIMED_OUT]
    rank = runs["overall_completion_status"].map({str(status): i for i, status in enumerate(order)}).fillna(len(order))
    failed = runs.assign(_rank=rank)[~runs["overall_is_successful"]].sort_values(["_rank", "task_id", "repetition"])
    return _listed(failed, "overall_score", "final_system_message", "parsing_errors")


def without_score(runs: pd.DataFrame) -> pd.DataFrame:
    """List the runs without a score, where they are and what their logs say; stale copies are left out."""
    return _listed(counted(runs[runs["overall_raw_score"].isna()]), "parsing_errors")


def zero_scores(runs: pd.DataFrame) -> pd.DataFrame:
    """List the runs whose score is zero, without stale copies; constructions among them still count in means."""
    return _listed(counted(runs[runs["overall_score"] == 0]))


def stale_copies(runs: pd.DataFrame) -> pd.DataFrame:
    """List the runs that hold a copy of another run's log and so count in no rate."""
    return _listed(runs[is_stale(runs)])


def flag_counts(runs: pd.DataFrame) -> pd.DataFrame:
    """Count the runs with each flag, with its meaning; flags that no run has are left out."""
    rows = [(name, n, meaning) for name, meaning in FLAGS.items() if (n := int(runs[f"flag_{name}"].sum()))]
    return pd.DataFrame(rows, columns=["flag", "runs", "meaning"])


def event_means(runs: pd.DataFrame, by: str | Sequence[str] = "model_name") -> pd.DataFrame:
    """Return the mean messages, commands, deaths and other events per run.

    These are lower bounds, as logs keep only the last turns. Stale copies are left out.
    """
    groups = counted(runs).groupby([by] if isinstance(by, str) else list(by), dropna=False)
    means = groups[[column.name for column in COUNT_COLUMNS]].mean()
    means.insert(0, "n", groups.size())
    return means.reset_index()


def ambiguous_definitions(definitions: TaskDefinitions) -> pd.DataFrame:
    """List the task ids with differing definitions, and their files."""
    rows = [(task_id, len(files), files) for task_id, files in definitions.ambiguous.items()]
    return pd.DataFrame(rows, columns=["task_id", "definitions", "files"])


def planned_tasks(definitions: TaskDefinitions, runs: pd.DataFrame) -> list[str]:
    """List the tasks that were to be run: those of the definition files of whose tasks over half were run."""
    there, files = set(runs["task_id"]), {task: definitions[task]["definition_file"] for task in definitions}
    table = pd.DataFrame({"task": list(files), "file": list(files.values())})
    is_run = table["task"].isin(there).groupby(table["file"]).transform("mean") > 0.5
    return table.loc[is_run, "task"].tolist()


def unused_files(ledger: pd.DataFrame) -> pd.DataFrame:
    """List the files of a ledger that were skipped or failed."""
    return ledger[ledger["status"] != "used"].sort_values(["status", "source"], ignore_index=True)


def progress(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs so far, those expected, and their durations, per experiment.

    Returns
    -------
    DataFrame
        model_name, experiment (with as much of its path as distinguishes experiments of one name), task_type, runs,
        tasks, tasks_expected (as the results file says; NA where none is there), total_duration and mean_duration in
        seconds (NaN unless the logs were loaded with original mtimes).
    """
    groups = runs.groupby(["model_name", "experiment_folder", "experiment", "task_type"], dropna=False)
    table = groups.agg(
        runs=("task_id", "size"),
        tasks=("task_id", "nunique"),
        tasks_expected=("experiment_total", "max"),
        total_duration=("duration", lambda d: d.sum(min_count=1)),
        mean_duration=("duration", "mean"),
    ).reset_index()
    folders = table["experiment_folder"]
    several = folders.groupby(table["experiment"]).transform("nunique") > 1
    paths = short_paths(folders.dropna().unique())
    table["experiment"] = table["experiment"].mask(several, folders.map(paths))
    del table["experiment_folder"]
    return table.sort_values(["model_name", "experiment", "task_type"], ignore_index=True)
