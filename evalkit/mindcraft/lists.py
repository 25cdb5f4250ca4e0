"""What a report lists: failed runs, flags, events, files that were not used, experiments and their progress."""

from collections.abc import Sequence

import pandas as pd

from evalkit.mindcraft.definitions import TaskDefinitions
from evalkit.mindcraft.format import CompletionStatus
from evalkit.mindcraft.table import COUNT_COLUMNS, FLAGS


def describe_runs(runs: pd.DataFrame, source: str) -> str:
    """Say in a sentence or two what runs these are, and whether they are the made samples."""
    if runs.empty:
        return "No runs of this kind."
    models, tasks = runs["model_name"].unique(), runs["task_id"].nunique()
    types = ", ".join(f"{n} {kind}" for kind, n in runs["task_type"].value_counts().items())
    text = f"{len(runs)} runs of {', '.join(models)} on {tasks} tasks ({types})."
    made = " These are made-up sample data: no model reached these scores."
    return text + made * source.startswith("samples:")


def with_difficulty(runs: pd.DataFrame) -> pd.DataFrame:
    """Make difficulty an ordered category: easy, medium, hard, any others, unknown."""
    values = runs["difficulty"].fillna("unknown").astype("object")
    order = dict.fromkeys(["easy", "medium", "hard", *sorted(set(values) - {"unknown"}), "unknown"])
    return runs.assign(difficulty=pd.Categorical(values, list(order), ordered=True))


def failed_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """List the runs without full success, broken ones first: what they were, how they ended, where they lie."""
    order = [CompletionStatus.LOG_FILE_ERROR, CompletionStatus.NO_SCORE_LOGGED, CompletionStatus.TIMED_OUT]
    rank = runs["overall_completion_status"].map({str(status): i for i, status in enumerate(order)}).fillna(len(order))
    columns = ["model_name", "task_id", "repetition", "overall_completion_status", "overall_score"]
    columns += ["final_system_message", "parsing_errors", "source"]
    failed = runs.assign(_rank=rank)[~runs["overall_is_successful"]]
    return failed.sort_values(["_rank", "task_id", "repetition"], ignore_index=True)[columns]


def without_score(runs: pd.DataFrame) -> pd.DataFrame:
    """List the runs without a score, where they lie and what their logs say."""
    columns = ["model_name", "task_id", "repetition", "overall_completion_status", "parsing_errors", "source"]
    return runs.loc[runs["overall_raw_score"].isna(), columns].reset_index(drop=True)


def zero_scores(runs: pd.DataFrame) -> pd.DataFrame:
    """List the runs whose score is zero, and where they lie; a construction counts in means all the same."""
    columns = ["model_name", "task_id", "repetition", "overall_completion_status", "source"]
    return runs.loc[runs["overall_score"] == 0, columns].reset_index(drop=True)


def flag_counts(runs: pd.DataFrame) -> pd.DataFrame:
    """Count the runs that carry each flag, with what it means; flags no run carries are left out."""
    counts = {name: int(runs[f"flag_{name}"].sum()) for name in FLAGS}
    rows = [(name, n, FLAGS[name]) for name, n in counts.items() if n]
    return pd.DataFrame(rows, columns=["flag", "runs", "meaning"])


def event_means(runs: pd.DataFrame, by: str | Sequence[str] = "model_name") -> pd.DataFrame:
    """Give messages, commands, deaths and other events per run; logs keep only the last turns: lower bounds."""
    by = [by] if isinstance(by, str) else list(by)
    names = [column.name for column in COUNT_COLUMNS]
    means = runs.groupby(by, dropna=False)[names].mean()
    return means.assign(n=runs.groupby(by, dropna=False).size()).reset_index()[[*by, "n", *names]]


def ambiguous_definitions(definitions: TaskDefinitions) -> pd.DataFrame:
    """List the task ids with differing definitions, and their files."""
    rows = [(task_id, len(files), files) for task_id, files in definitions.ambiguous.items()]
    return pd.DataFrame(rows, columns=["task_id", "definitions", "files"])


def unused_files(ledger: pd.DataFrame) -> pd.DataFrame:
    """List the files of a ledger that were skipped or failed."""
    return ledger[ledger["status"] != "used"].sort_values(["status", "source"], ignore_index=True)


def progress(runs: pd.DataFrame) -> pd.DataFrame:
    """Give runs so far against expected, and times, per experiment.

    Returns
    -------
    DataFrame
        model_name, experiment (with the folder above where several have one name), task_type, runs, tasks,
        tasks_expected (as the results file says; NA where none is there), total_duration and mean_duration in seconds
        (NaN unless the logs were loaded with original mtimes).
    """
    groups = runs.assign(experiment=_experiments(runs)).groupby(["model_name", "experiment", "task_type"], dropna=False)
    table = groups.agg(
        runs=("task_id", "size"),
        tasks=("task_id", "nunique"),
        tasks_expected=("experiment_total", "max"),
        total_duration=("duration", lambda d: d.sum(min_count=1)),
        mean_duration=("duration", "mean"),
    )
    return table.reset_index()


def _experiments(runs: pd.DataFrame) -> list[str]:
    """Name the experiment of each run, with the folder above it where several experiments have one name."""
    places = []
    for name, source in zip(runs["experiment"], runs["source"], strict=True):
        path = f"/{source}/"
        places.append(path[: path.rfind(f"/{name}/")].rpartition("/")[-1])
    several = pd.Series(places, runs.index, dtype="str").groupby(runs["experiment"]).transform("nunique") > 1
    named = zip(places, runs["experiment"], several, strict=True)
    return [f"{folder}/{name}" if repeated else name for folder, name, repeated in named]
