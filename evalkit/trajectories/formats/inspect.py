"""inspect_ai: evaluations as archives (``.eval``), of which runs need the header and the summaries only, and as JSON.

Facts from logs of inspect_ai 0.3 of 2024 to 2026. Arguments of models (`model_args`) may hold keys and are never read.
"""

import io
import struct
import zipfile
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
import pyarrow as pa

from evalkit.kinds import Parsed
from evalkit.trajectories.format import (
    Message,
    chat_messages,
    content_text,
    count_of,
    error_text,
    number_of,
    part_of,
    run_row,
    seconds_between,
    text_of,
    time_of,
    total,
    used,
)

GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}  # correct, incorrect, partly, no answer
MOST_BYTES = 2**31  # of a member of an archive
_ZSTANDARD = 93
_LIMITS = ("message_limit", "token_limit", "time_limit", "working_limit", "cost_limit", "turn_limit")
_TOKENS = {
    "tokens_in": ("input_tokens", "input_tokens_cache_read", "input_tokens_cache_write"),
    "tokens_cache": ("input_tokens_cache_read",),
    "tokens_out": ("output_tokens",),
}


def recognises(value: Any) -> str:
    """Return ``inspect_ai log`` for a decoded log; empty for anything else."""
    is_log = part_of(value, "eval", "task") is not None and part_of(value, "eval", "model") is not None
    return "inspect_ai log" if is_log else ""


def is_archive(data: bytes) -> bool:
    """Return whether bytes begin an archive of inspect_ai."""
    return data.startswith(b"PK") and any(name in data[:400] for name in (b"_journal/", b"header.json", b"samples/"))


def parse_archive(path: str, data: bytes) -> Parsed:
    """Return the runs of an archive; of one that is still written, those whose summaries are there."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = archive.namelist()
        if "header.json" in names:
            header = _member(data, archive, "header.json")
            summaries = _member(data, archive, "summaries.json") if "summaries.json" in names else []
        else:
            header = {"status": "started", **_member(data, archive, "_journal/start.json")}
            parts = [name for name in names if name.startswith("_journal/summaries/")]
            summaries = [summary for name in parts for summary in _member(data, archive, name)]
    return _parsed(header, summaries)


def parse(path: str, value: Any) -> Parsed:
    """Return the runs of a log that is one JSON document."""
    return _parsed(value, value.get("samples") or ())


def messages(data: bytes, part: str, decode: Callable[[bytes], Any]) -> list[Message]:
    """List the messages of a sample of an archive, or of a document."""
    if is_archive(data):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            sample = _member(data, archive, f"samples/{part}.json")
    else:
        samples = decode(data).get("samples") or ()
        sample = next(sample for sample in samples if _part(sample) == part)
    attachments = sample.get("attachments") or {}
    return chat_messages(_attached(sample.get("messages"), attachments))


def _member(data: bytes, archive: zipfile.ZipFile, name: str) -> Any:
    """Decode a member of an archive; `zipfile` knows Zstandard only since Python 3.14, so pyarrow unpacks it."""
    info = archive.getinfo(name)
    if info.file_size > MOST_BYTES:
        raise ValueError(f"{name}: {info.file_size / 2**30:.1f} GiB unpacked, more than is read")
    if info.compress_type != _ZSTANDARD:
        return msgspec.json.decode(archive.read(info))
    name_size, extra_size = struct.unpack_from("<HH", data, info.header_offset + 26)  # of the member's own header
    start = info.header_offset + 30 + name_size + extra_size
    packed = memoryview(data)[start : start + info.compress_size]
    with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as stream:
        return msgspec.json.decode(stream.read(info.file_size))


def _parsed(header: Any, samples: Iterable[Any]) -> Parsed:
    evaluation = header["eval"]
    config, arguments = evaluation.get("config") or {}, evaluation.get("task_args")
    limits = {name: config[name] for name in _LIMITS if config.get(name) is not None}
    task = text_of(evaluation.get("task"))
    shared = {
        "format": "inspect_ai",
        "experiment": text_of(evaluation.get("task_id")),
        "dataset": f"{task} {text_of(arguments)}" if arguments else task,
        "task_checksum": text_of(evaluation.get("task_version")) or None,
        "model_name": text_of(evaluation.get("model")),
        "agent": text_of(evaluation.get("solver")) or None,
        "agent_version": text_of(part_of(evaluation, "revision", "commit")) or None,
        "limits": ", ".join(f"{name}={value}" for name, value in limits.items()) or None,
        "temperature": number_of(part_of(evaluation, "model_generate_config", "temperature")),
    }
    samples = [sample for sample in samples if isinstance(sample, dict)]
    headline = part_of(header, "results", "headline", "scorer")
    scores = [score for sample in samples for score in _scores(sample, headline)]
    epochs, planned = count_of(config.get("epochs")) or 1, part_of(evaluation, "dataset", "samples")
    facts = [("planned", "", "", str(count_of(planned) * epochs))] if count_of(planned) else []
    facts.append(("created", "", "", text_of(evaluation.get("created"))))
    is_running = header.get("status") == "started"
    return used([_run(shared, sample, is_running) for sample in samples], scores, facts)


def _run(shared: Mapping[str, Any], sample: Mapping[str, Any], is_running: bool) -> tuple:
    usages = [usage for usage in (sample.get("model_usage") or {}).values() if isinstance(usage, dict)]
    usage = {
        column: count_of(total(count_of(usage.get(key)) for usage in usages for key in keys))
        for column, keys in _TOKENS.items()
    }
    limit, error = sample.get("limit"), sample.get("error")
    limit = text_of(part_of(limit, "type") or limit)
    status = "error" if error else f"limit_{limit}" if limit else "completed"
    seconds = number_of(sample.get("total_time"))
    metadata = sample.get("metadata")
    return run_row(
        **shared,
        part=_part(sample),
        task_id=text_of(sample.get("id")),
        repetition=max(0, (count_of(sample.get("epoch")) or 1) - 1),
        exit_reason=("error" if error else f"{limit} limit" if limit else "") or None,
        status="running" if is_running and sample.get("completed") is False else status,
        started=time_of(sample.get("started_at")),
        duration=seconds
        if seconds is not None
        else seconds_between(sample.get("started_at"), sample.get("completed_at")),
        turns=count_of(sample.get("turn_count")) or count_of(sample.get("message_count")),
        cost=total(number_of(usage.get("total_cost")) for usage in usages),
        retries=count_of(sample.get("retries")),
        error=error_text(error) or None,
        extra=text_of(metadata) if metadata else None,
        **usage,
    )


def _part(sample: Mapping[str, Any]) -> str:
    return f"{text_of(sample.get('id'))}_epoch_{sample.get('epoch', 1)}"


def _scores(sample: Mapping[str, Any], headline: Any) -> Iterable[tuple]:
    """Yield the scores of a sample, that of the headline first; a scorer with several values has a key for each."""
    scores = sample.get("scores")
    if not isinstance(scores, dict):
        return
    for scorer in sorted(scores, key=lambda name: name != headline):
        value = part_of(scores, scorer, "value")
        values = {f"{scorer}/{key}": item for key, item in value.items()} if isinstance(value, dict) else {}
        for key, item in (values or {scorer: value}).items():
            number = GRADES.get(item) if isinstance(item, str) else number_of(item)
            yield _part(sample), key, number, content_text(item)


def _attached(value: Any, attachments: Mapping[str, Any]) -> Any:
    """Put texts that were stored once back in their places."""
    if isinstance(value, str) and value.startswith("attachment://"):
        return attachments.get(value.removeprefix("attachment://"), value)
    if isinstance(value, list):
        return [_attached(item, attachments) for item in value]
    if isinstance(value, dict):
        return {key: _attached(item, attachments) for key, item in value.items()}
    return value
