"""Write runs with scores in the schema of Every Eval Ever: one file of results and one file of runs per evaluation.

Source: https://github.com/evaleval/every_eval_ever, version 0.3.0 of ``eval.schema.json`` and
``instance_level_eval.schema.json``.
"""

import hashlib
import json
import os
import re
import time
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pandas as pd

from evalkit._notes import Notes, note
from evalkit.io.paths import SourceError, check_path, is_url
from evalkit.io.secrets import masked
from evalkit.io.write import write_text
from evalkit.kinds.logs import Logs
from evalkit.kinds.runs import MEASURED, STOPPED, UNKNOWN, outcomes
from evalkit.kinds.success_rates import rates

SCHEMA = "0.3.0"
SUFFIX = ".eee"
NOT_STATED = "not stated"  # value of fields that the schema requires and logs do not record
# columns that are written as text into the metadata of a run, so that evalkit can read the run back unchanged
_WITH_FIELD = ("dataset", "temperature", "tokens_in", "tokens_out", "document_hash", "error")
_WITHOUT_FIELD = (
    *("experiment", "repetition", "seed", "status", "started", "cost", "agent", "agent_version", "limits"),
    *("task_checksum", "tokens_cache", "exit_reason"),
)
KEPT = (*_WITH_FIELD, *_WITHOUT_FIELD)
# metric of a score about whose range nothing is known
_METRIC = {"lower_is_better": False, "score_type": "continuous", "min_score": "-Infinity", "max_score": "Infinity"}
_OF_EVALUATION = ("model_name", "agent", "agent_version", "temperature", "experiment")  # equal for all its runs
_ERROR = re.compile(f"{STOPPED.pattern}|error|exceeded", re.IGNORECASE)
_HOME = re.compile(r"(?:/home/|/Users/|[A-Za-z]:\\Users\\)[^/\\\s'\":]+")  # home folder, which contains a person's name
_UNSAFE = re.compile(r'[<>:"/\\|?*\x00-\x1f]')


class Exported(NamedTuple):
    """The written files, the numbers of evaluations and runs, and notes on what the schema can't represent."""

    files: list[str]
    evaluations: int
    runs: int
    notes: Notes


def write_every_eval_ever(
    logs: Logs, folder: str | os.PathLike, *, organization: str = NOT_STATED, when: float | None = None
) -> Exported:
    """Write runs with scores into a folder, as ``data/DATASET/DEVELOPER/MODEL/UUID.json`` and ``UUID_samples.jsonl``.

    There is a pair of files for each combination of data set, model, agent, temperature and experiment. The result is
    evalkit's rate or mean score with its interval; any other scores of the runs are further results, with their means.
    `evalkit trajectories FOLDER` reads the runs back.

    Parameters
    ----------
    logs : Logs
        Logs of any kind.
    folder : path
        A folder that is empty or does not exist yet. By convention, its name ends in ``.eee``.
    organization : str
        Organization that provides the data (`source_organization_name`).
    when : float, optional
        Time of the export in seconds since 1970 (`retrieved_timestamp`); by default now.

    Returns
    -------
    Exported
        The files and counts. `notes` describe what the schema can't represent, such as runs that were not measured.

    Raises
    ------
    SourceError
        If the folder is not empty or can't be written, or if no run has a score or an outcome.

    Examples
    --------
    >>> import evalkit, tempfile
    >>> logs = evalkit.load("samples:trajectories/table/runs.csv")
    >>> done = write_every_eval_ever(logs, tempfile.mkdtemp())
    >>> len(done.files) == 2 * done.evaluations
    True
    """
    root = os.fspath(folder)
    check_path(root)
    if is_url(root) or (os.path.exists(root) and not (os.path.isdir(root) and not os.listdir(root))):
        raise SourceError(f"{root}: Every Eval Ever is written into a local folder that is empty or not there yet")
    data = outcomes(logs.runs, kind=logs.kind)
    runs = logs.runs.assign(outcome=data.table["outcome"], value=data.table["value"])
    if "logged_model" in runs:  # `model_name` contains more than the model
        runs["model_name"] = runs["logged_model"]
    runs["dataset"] = runs["task_type"]
    is_counted = runs.index.isin(data.table.index)
    is_rate, has_outcome = data.kind == "proportion", runs["outcome"].isin(MEASURED)
    has_score = is_counted & (has_outcome if is_rate else runs["value"].notna())
    if not has_score.any():
        raise SourceError("no run has a score or an outcome: Every Eval Ever has no place for others")
    metric = {"metric_name": "is_successful", "lower_is_better": False, "score_type": "binary"}
    if not is_rate:
        metric = _METRIC | {"metric_name": "score"}
        if data.is_share:
            metric |= {"min_score": 0, "max_score": 1}
    by = [name for name in ("dataset", *_OF_EVALUATION) if name in runs]
    timestamp = str(int(time.time() if when is None else when))
    files = list[str]()
    for _, own in runs[is_counted].assign(has_score=has_score).groupby(by, dropna=False):
        scored = own[own["has_score"]]
        if len(scored):
            unmeasured = len(own) - len(scored)
            files += _write_evaluation(root, logs, scored, unmeasured, metric, organization, timestamp)
    kept = [name for name in _WITHOUT_FIELD if name in runs and runs.loc[has_score, name].notna().any()]
    notes = note("in_metadata", columns=kept)
    left_out: dict[str, Any] = {"unmeasured_runs": is_counted & ~has_score, "uncounted_runs": ~is_counted}
    left_out["runs_without_outcome"] = has_score & ~has_outcome
    for code, rows in left_out.items():
        if rows.any():
            notes += note(code, count=int(rows.sum()))
    return Exported(files, len(files) // 2, int(has_score.sum()), notes + note("no_transcripts"))


def _write_evaluation(
    root: str, logs: Logs, runs: pd.DataFrame, unmeasured: int, metric: Mapping, organization: str, timestamp: str
) -> list[str]:
    """Write the result and the runs of one evaluation, which had `unmeasured` more runs; return both paths."""
    shared = {name: _text(runs[name].iloc[0]) for name in ("dataset", *_OF_EVALUATION) if name in runs}
    model, dataset = shared["model_name"] or UNKNOWN, shared["dataset"] or logs.kind.name
    digest = hashlib.blake2b(json.dumps([timestamp, shared]).encode(), digest_size=16).digest()
    name = str(uuid.UUID(bytes=digest, version=4))
    evaluation_id = f"{dataset}/{model}/{timestamp}/{name[:8]}"
    developer, slash, rest = model.partition("/")
    if not slash:
        developer, rest = NOT_STATED, model
    place = "/".join(["data", *map(_component, (dataset, developer, rest))])
    if "score_key" in runs and runs["score_key"].nunique() == 1:
        metric = {**metric, "metric_name": runs["score_key"].dropna().iloc[0]}
    figures = rates(runs.assign(model_name=model), "model_name", kind=logs.kind).iloc[0]
    result_id = f"{dataset}:{metric['metric_name']}"
    details = {"n_tasks": str(figures["n_tasks"]), "target": str(figures["target"])}
    details["runs_not_measured"] = str(unmeasured)
    uncertainty: dict[str, Any] = {"num_samples": int(figures["n"])}
    if pd.notna(figures["low"]) and pd.notna(figures["high"]):
        bounds = {"lower": float(figures["low"]), "upper": float(figures["high"]), "confidence_level": 0.95}
        uncertainty["confidence_interval"] = {**bounds, "method": str(figures["method"])}
    result: dict[str, Any] = {
        "evaluation_result_id": result_id,
        "evaluation_name": dataset,
        "source_data": {"dataset_name": dataset, "source_type": "other"},
        "metric_config": metric,
        "score_details": {"score": float(figures["estimate"]), "details": details, "uncertainty": uncertainty},
    }
    if shared.get("temperature"):
        result["generation_config"] = {"generation_args": {"temperature": float(shared["temperature"])}}
    of_rows = {"schema_version": SCHEMA, "evaluation_id": evaluation_id, "model_id": model}
    of_rows |= {"evaluation_name": dataset, "evaluation_result_id": result_id}
    rows = [of_rows | _sample(run) for run in runs.to_dict("records")]
    results, row_of = [result], {row["metadata"]["run_id"]: row for row in rows}
    for key, values in _other_scores(logs, runs, metric["metric_name"]):
        of_key = {"evaluation_result_id": f"{dataset}:{key}"}
        about = {"metric_name": key, "additional_details": {"direction": NOT_STATED}}
        score = {"score": float(values.mean()), "uncertainty": {"num_samples": len(values)}}
        results.append(result | of_key | {"metric_config": _METRIC | about, "score_details": score})
        for run_id, value in values.items():
            graded = {"score": value, "is_correct": value == 1}
            metadata = {"run_id": run_id, "score": str(value)}
            rows.append(row_of[run_id] | of_key | {"evaluation": graded, "metadata": metadata})
    text = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    samples = f"{place}/{name}_samples.jsonl"
    about_model = {"deployment_type": "unknown", "model_availability": "unknown"}
    about_model |= {part: shared[part] for part in ("agent", "agent_version") if shared.get(part)}
    source = {"source_type": "evaluation_run", "source_organization_name": organization}
    formats = sorted(set(runs["format"].dropna())) if "format" in runs else [logs.kind.name]
    library_version = shared.get("agent_version") if formats == [shared.get("agent")] else ""
    document: dict[str, Any] = {
        "schema_version": SCHEMA,
        "evaluation_id": evaluation_id,
        "retrieved_timestamp": timestamp,
        "source_metadata": {**source, "evaluator_relationship": "other"},
        "eval_library": {"name": ", ".join(formats), "version": library_version or "unknown"},
        "model_info": {"name": model, "id": model, "developer": developer, "additional_details": about_model},
        "evaluation_results": results,
        "detailed_evaluation_results": {
            "format": "jsonl",
            "file_path": samples,
            "hash_algorithm": "sha256",
            "checksum": hashlib.sha256(text.encode()).hexdigest(),
            "total_rows": len(rows),
        },
    }
    started = runs["started"].min()
    if pd.notna(started):
        document["evaluation_timestamp"] = started.isoformat()
    paths = [f"{root}/{place}/{name}.json", f"{root}/{samples}"]
    write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", paths[0])
    write_text(text, paths[1])
    return paths


def _other_scores(logs: Logs, runs: pd.DataFrame, counted: str) -> Iterator[tuple[str, pd.Series]]:
    """Yield each score of the runs except the counted one: its name, and its values by run id."""
    scores = getattr(logs, "scores", pd.DataFrame(columns=["run_id", "key", "value"]))
    is_other = scores["run_id"].isin(runs["run_id"]) & scores["key"].ne(counted) & scores["value"].notna()
    for key, own in scores[is_other].groupby("key", observed=True):
        yield str(key), own.drop_duplicates("run_id").set_index("run_id")["value"].astype("float64")


def _sample(run: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a run as a record of the schema, without its messages."""
    metadata = {name: text for name in KEPT if (text := _text(run.get(name)))}
    for name in ("exit_reason", "error"):
        if name in metadata:
            metadata[name] = masked(_HOME.sub("~", metadata[name]))
    if run["outcome"] in MEASURED:
        metadata["is_successful"] = _text(run["outcome"] == "success")
    if pd.notna(run["score"]):
        metadata["score"] = _text(run["score"])
    row: dict[str, Any] = {
        "sample_id": _text(run["task_id"]) or run["run_id"],
        "interaction_type": "agentic",
        "input": {"raw": "", "reference": [masked(target)] if (target := _text(run.get("target"))) else []},
        "messages": [],
        "answer_attribution": [],
        "evaluation": {"score": float(run["value"]), "is_correct": run["outcome"] == "success"},
        "metadata": {"run_id": run["run_id"], **metadata},
    }
    if pd.notna(run["turns"]) and run["turns"] >= 1:  # the schema's minimum
        row["evaluation"]["num_turns"] = int(run["turns"])
    if pd.notna(run["tokens_in"]) and pd.notna(run["tokens_out"]):
        used = {"input_tokens": int(run["tokens_in"]), "output_tokens": int(run["tokens_out"])}
        row["token_usage"] = {**used, "total_tokens": sum(used.values())}
    if pd.notna(run["duration"]):
        row["performance"] = {"latency_ms": 1000 * float(run["duration"])}
    if digest := metadata.get("document_hash"):
        row["sample_hash"] = digest
        row["sample_id"] = row["sample_id"].removesuffix(f" {digest[:8]}")  # added to tell documents apart
    ending = metadata.get("exit_reason") or metadata.get("status", "")
    if "error" in metadata or _ERROR.search(ending):
        stated = [metadata[name] for name in ("exit_reason", "error") if name in metadata]
        row["error"] = ": ".join(dict.fromkeys(stated)) or ending
    return row


def _text(value: Any) -> str:
    """Return a value as text; "" for a missing value."""
    if pd.isna(value):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if isinstance(value, pd.Timestamp) else str(value)


def _component(name: str) -> str:
    """Return a name as a component of a path that is valid on every file system."""
    return _UNSAFE.sub("_", masked(name))[:100].strip(". ") or "_"
