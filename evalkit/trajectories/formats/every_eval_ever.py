"""Every Eval Ever 0.2 and 0.3: runs from ``…_samples.jsonl``. The evaluation file next to it contains only figures."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from evalkit._text import counted_noun
from evalkit.kinds import Parsed
from evalkit.kinds.every_eval_ever import KEPT
from evalkit.trajectories.chat import Message, OpenNamed, chat_messages
from evalkit.trajectories.json_lines import decoded
from evalkit.trajectories.json_values import number_of, objects, part_of, text_of
from evalkit.trajectories.records import Runs, run_row, used

FORMAT = "Every Eval Ever"
ENCODED = frozenset(("messages", "output"))  # large values, needed only for transcripts
_VERSIONS = ("0.2", "0.3")
_RUN_KEYS = {"evaluation_id", "sample_id", "evaluation"}
_NUMBERS = ("temperature", "cost", "repetition", "tokens_in", "tokens_out", "tokens_cache")  # numbers stored as text


def recognises(value: Any) -> str:
    """Return the title of a decoded samples or evaluation file; empty for anything else."""
    first = value[0] if isinstance(value, list) and value else value
    keys = first.keys() if isinstance(first, dict) else set()
    if keys >= _RUN_KEYS and part_of(first, "evaluation", "score") is not None:
        return "Every Eval Ever log"
    return "Every Eval Ever evaluation" if {"evaluation_id", "evaluation_results", "model_info"} <= keys else ""


def parse(path: str, value: Any) -> Parsed:
    """Return the runs in a samples file. A run has a line for each of its metrics."""
    rows = [value] if isinstance(value, dict) else list(value)
    versions = Counter(text_of(part_of(row, "schema_version")) for row in rows)
    reasons = [
        f"schema_version {version or 'missing'} is unknown ({counted_noun(n, 'record')})"
        for version, n in versions.items()
        if not version.startswith(_VERSIONS)
    ]
    if isinstance(value, dict) and "evaluation_results" in value:
        return used(reason="; ".join(["figures of an evaluation, without its runs", *reasons]))
    runs = by_part(rows)
    if lost := len(rows) - sum(map(len, runs.values())):
        reasons.append(f"{counted_noun(lost, 'line')} without a sample")
    lines = [(part, row) for part, own in runs.items() for row in own]
    # metrics with graded scores, which are not outcomes
    graded = {_key(row) for _, row in lines if number_of(part_of(row, "evaluation", "score")) not in (0.0, 1.0)}
    scores = [(part, _key(row), _score(row), "") for part, row in lines if _is_own(row) or _score(row) is not None]
    return used([_run(part, own, graded) for part, own in runs.items()], scores, reason="; ".join(reasons))


def by_part(rows: Iterable[Any]) -> dict[str, list[dict[str, Any]]]:
    """Return the lines of each run, one for each metric. A repeated metric belongs to another run of the sample."""
    seen = Counter[tuple[str, ...]]()
    runs: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if isinstance(row, dict) and row.keys() >= _RUN_KEYS:
            own = [text_of(row["evaluation_id"]), _dataset(row), text_of(row["sample_id"])]
            if _is_own(row):
                own.append(text_of(row["metadata"]["run_id"]))
            place = seen[(*own, _key(row))]
            seen[(*own, _key(row))] += 1
            runs.setdefault("/".join([*own, str(place)]), []).append(row)
    return runs


def _dataset(row: dict[str, Any]) -> str:
    """Return the dataset of a line without the filter that the lm-eval converter appends; the metric contains it."""
    name = text_of(row.get("evaluation_name"))
    dataset, _, filtered = name.rpartition("/")
    return dataset if dataset and text_of(row.get("evaluation_result_id")).endswith(f":{filtered}") else name


def _key(row: dict[str, Any]) -> str:
    """Return the name of the metric in a line."""
    name = text_of(row.get("evaluation_result_id")).removeprefix(f"{text_of(row.get('evaluation_name'))}:")
    return name or "score"


def _is_own(row: dict[str, Any]) -> bool:
    """Return whether evalkit wrote a line, so that its metadata contain the columns of the run."""
    return part_of(row, "metadata", "run_id") is not None


def _is_measured(row: dict[str, Any]) -> bool:
    return _is_own(row) or row.get("error") in (None, "")


def _score(row: dict[str, Any]) -> float | None:
    """Return the score in a line. Leave out a 0 without a metric, which the lm-eval converter writes for no score."""
    if _is_own(row):
        return _number(row["metadata"], "score")
    is_number = row.get("evaluation_result_id") or part_of(row, "metadata", "lm_eval_metrics") is None
    return number_of(part_of(row, "evaluation", "score")) if is_number and _is_measured(row) else None


def _run(part: str, rows: list[dict[str, Any]], graded: set[str]) -> tuple:
    """Return a run made from its lines, with its success by metric for `set_success` to choose from."""
    first = rows[0]
    metadata: dict[str, Any] = given if isinstance(given := first.get("metadata"), dict) else {}
    if _is_own(first):
        stated = {name: _number(metadata, name) if name in _NUMBERS else metadata.get(name) for name in KEPT}
        correct = {_key(first): {"true": True, "false": False}.get(text_of(metadata.get("is_successful")))}
        others = [row for row in rows[1:] if _key(row) not in graded]
    else:
        stated = {
            "dataset": _dataset(first),
            "experiment": first["evaluation_id"],
            "repetition": int(part.rpartition("/")[2]),
            "status": "completed" if _is_measured(first) else "error",
            "error": first.get("error"),
            "exit_reason": first.get("error"),
            "document_hash": first.get("sample_hash"),
            "tokens_in": part_of(first, "token_usage", "input_tokens"),
            "tokens_out": part_of(first, "token_usage", "output_tokens"),
        }
        correct = {}
        others = [row for row in rows if _score(row) is not None and _key(row) not in graded]
    correct |= {_key(row): part_of(row, "evaluation", "is_correct") is True for row in others}
    latency = number_of(part_of(first, "performance", "latency_ms"))
    references = part_of(first, "input", "reference")
    return run_row(
        **stated,
        part=part,
        log_id=metadata.get("run_id"),
        format=FORMAT,
        task_id=text_of(first["sample_id"]),
        model_name=text_of(first.get("model_id")),
        duration=None if latency is None else latency / 1000,
        turns=part_of(first, "evaluation", "num_turns"),
        target=", ".join(map(text_of, references)) if isinstance(references, list) else None,
        extra={"is_correct": correct},
    )


def _number(metadata: dict[str, Any], name: str) -> float | None:
    try:
        return float(metadata[name])
    except (KeyError, TypeError, ValueError):
        return None


def set_success(runs: Runs) -> None:
    """Set the success of each run to the outcome that its file states for the metric used as its score."""
    for run in runs:
        if run.format == FORMAT:
            correct = msgspec.json.decode(run.extra or "{}")["is_correct"]
            run.is_successful = correct.get(run.score_key)


def messages(parts: Mapping[str, list[dict[str, Any]]], part: str, open_named: OpenNamed) -> list[Message]:
    """List the messages in the first line of a run, or else its input and outputs."""
    first = {key: decoded(value) for key, value in parts[part][0].items()}
    chat = [
        {**one, "tool_call_ids": one.get("tool_call_id"), "reasoning_content": one.get("reasoning_trace")}
        for one in objects(first, "messages")
    ]
    if spoken := chat_messages(chat):
        return spoken
    answers = part_of(first, "output", "raw")
    texts = [text_of(answer) for answer in answers] if isinstance(answers, list) else []
    asked = text_of(part_of(first, "input", "raw"))
    return [Message(role, text) for role, text in [("user", asked), *(("assistant", text) for text in texts)] if text]
