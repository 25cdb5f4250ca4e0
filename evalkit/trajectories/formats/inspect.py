"""inspect_ai: evaluations as archives (``.eval``), of which runs need the header and the summaries only, and as JSON.

Facts from logs of inspect_ai 0.3 of 2024 to 2026. Arguments of models (`model_args`) may hold keys and are never read.
"""

import io
import struct
import zipfile
from collections.abc import Mapping
from types import GenericAlias
from typing import Any, BinaryIO

import msgspec
import pyarrow as pa

from evalkit.io import decode_json
from evalkit.kinds import Parsed
from evalkit.trajectories.format import (
    Message,
    chat_messages,
    count_of,
    error_text,
    number_of,
    part_of,
    run_row,
    score_rows,
    seconds_between,
    text_of,
    total,
    used,
)

GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}  # correct, incorrect, partly, no answer
MOST_BYTES = 2**31  # of a member of an archive
_ZSTANDARD = 93
_LIMITS = ("message_limit", "token_limit", "time_limit", "working_limit", "cost_limit", "turn_limit")
_USAGE = {
    "tokens_in": ("input_tokens", "input_tokens_cache_read", "input_tokens_cache_write"),
    "tokens_cache": ("input_tokens_cache_read",),
    "tokens_out": ("output_tokens",),
    "cost": ("total_cost",),
}


def _reads(name: str, fields: str, **more: Any) -> Any:
    """Return a type with what is read of an object; everything else, such as arguments of models, is passed over."""
    own = [(field, Any, None) for field in fields.split()]
    return msgspec.defstruct(name, [*own, *((field, of_type, None) for field, of_type in more.items())])


_EVALUATION = _reads(
    "Evaluation",
    "task task_id task_args task_version eval_id created model model_generate_config dataset config solver",
)
_SAMPLE = _reads(  # of a sample, or of its summary; events, the greatest part, are passed over
    "Sample",
    "id epoch uuid scores model_usage metadata error limit started_at completed_at total_time completed message_count"
    " turn_count retries",
)
_SPOKEN = _reads("Spoken", "id epoch messages attachments error")
_SAMPLES, _ALL_SPOKEN = (GenericAlias(list, (one,)) for one in (_SAMPLE, _SPOKEN))
_LOG = msgspec.json.Decoder(_reads("Log", "status results", eval=_EVALUATION))
_DOCUMENT = msgspec.json.Decoder(_reads("Document", "status results", eval=_EVALUATION, samples=_SAMPLES | None))
_SUMMARIES, _MESSAGES = msgspec.json.Decoder(_SAMPLES), msgspec.json.Decoder(_SPOKEN)
_TRANSCRIPTS = msgspec.json.Decoder(_reads("Transcripts", "", samples=_ALL_SPOKEN | None))


def recognises(value: Any) -> str:
    """Return ``inspect_ai log`` for a decoded log, or its beginning; empty for anything else."""
    keys = part_of(value, "eval") or {}
    return "inspect_ai log" if "task" in keys and ("run_id" in keys or "model" in keys) else ""


def is_archive(data: bytes) -> bool:
    """Return whether bytes begin an archive of inspect_ai."""
    return data.startswith(b"PK") and any(name in data[:400] for name in (b"_journal/", b"header.json", b"samples/"))


def excerpt(file: BinaryIO) -> bytes:
    """Return an archive with only what `parse_log` reads of one: a thousandth of its bytes."""
    target = io.BytesIO()
    with zipfile.ZipFile(file) as archive, zipfile.ZipFile(target, "w") as small:
        for name in _described(archive):
            small.writestr(name, _unpacked(archive, name))
    return target.getvalue()


def parse_log(data: bytes) -> Parsed:
    """Return the runs of a log; of one that is still written, those whose summaries are there."""
    if not is_archive(data):
        document = _decoded(data, _DOCUMENT)
        return _parsed(document, document.samples or [])
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        first, *others = _described(archive)
        log = _decoded(_unpacked(archive, first), _LOG)
        log.status = log.status if first == "header.json" else "started"
        return _parsed(log, [one for name in others for one in _decoded(_unpacked(archive, name), _SUMMARIES)])


def _described(archive: zipfile.ZipFile) -> list[str]:
    """Return the members that tell the runs: header and summaries, or those of the journal of a log still written."""
    names = archive.namelist()
    if "header.json" in names:
        return ["header.json", *(["summaries.json"] if "summaries.json" in names else [])]
    return ["_journal/start.json", *(name for name in names if name.startswith("_journal/summaries/"))]


def messages(data: bytes, part: str) -> list[Message]:
    """List the messages of a sample of a log."""
    if is_archive(data):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            sample = _decoded(_unpacked(archive, f"samples/{part}.json"), _MESSAGES)
    else:
        samples = _decoded(data, _TRANSCRIPTS).samples or []
        sample = {_part(one): one for one in samples}[part]
    said = chat_messages(_attached(sample.messages, sample.attachments or {}))
    return [*said, Message("error", error_text(sample.error))] if sample.error else said


def _unpacked(archive: zipfile.ZipFile, name: str) -> bytes:
    """Unpack a member of an archive; `zipfile` knows Zstandard only since Python 3.14, so pyarrow does that."""
    info, file = archive.getinfo(name), archive.fp
    if info.file_size > MOST_BYTES:
        raise ValueError(f"{name}: {info.file_size / 2**30:.1f} GiB unpacked, more than is read")
    if info.compress_type != _ZSTANDARD or file is None:
        return archive.read(info)
    file.seek(info.header_offset + 26)
    name_size, extra_size = struct.unpack("<HH", file.read(4))  # of the member's own header
    file.seek(name_size + extra_size, io.SEEK_CUR)
    with pa.CompressedInputStream(pa.BufferReader(file.read(info.compress_size)), "zstd") as stream:
        return stream.read(info.file_size)


def _decoded(data: bytes, decoder: msgspec.json.Decoder) -> Any:
    """Decode JSON, also with NaN; only where that is needed, a sample of a gigabyte is copied."""
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return decode_json(data, decoder)[0]


def _parsed(log: Any, samples: list[Any]) -> Parsed:
    evaluation = log.eval
    config, arguments, task = evaluation.config or {}, evaluation.task_args, text_of(evaluation.task)
    limits = {name: config[name] for name in _LIMITS if config.get(name) is not None}
    shared = {
        "format": "inspect_ai",
        "experiment": evaluation.task_id,
        "created": evaluation.created,
        "dataset": f"{task} {text_of(arguments)}" if arguments else task,
        "task_checksum": evaluation.task_version or None,
        "model_name": evaluation.model,
        "agent": evaluation.solver,
        "limits": ", ".join(f"{name} {value}" for name, value in limits.items()),
        "temperature": part_of(evaluation.model_generate_config, "temperature"),
    }
    headline = part_of(log.results, "headline", "scorer")
    scores = [row for sample in samples for row in score_rows(_part(sample), _values(sample, headline), GRADES)]
    epochs, ids = count_of(config.get("epochs")) or 1, part_of(evaluation.dataset, "sample_ids")
    facts = [("planned", text_of(one), "", str(epochs)) for one in (ids if isinstance(ids, list) else ())]
    if not facts and (planned := count_of(part_of(evaluation.dataset, "samples"))):
        facts = [("planned", "", "", str(planned * epochs))]
    is_running = log.status == "started"
    return used([_run(shared, evaluation.eval_id, sample, is_running) for sample in samples], scores, facts)


def _part(sample: Any) -> str:
    return f"{text_of(sample.id)}_epoch_{1 if sample.epoch is None else sample.epoch}"


def _run(shared: Mapping[str, Any], eval_id: Any, sample: Any, is_running: bool) -> tuple:
    usages = [usage for usage in (sample.model_usage or {}).values() if isinstance(usage, dict)]
    limit, seconds = text_of(part_of(sample.limit, "type") or sample.limit), number_of(sample.total_time)
    status = "error" if sample.error else f"limit_{limit}" if limit else "completed"
    return run_row(
        **shared,
        part=_part(sample),
        log_id=sample.uuid or f"{eval_id} {_part(sample)}",
        task_id=sample.id,
        repetition=max(0, (count_of(sample.epoch) or 1) - 1),
        exit_reason="error" if sample.error else f"{limit} limit" if limit else None,
        status="running" if is_running and sample.completed is False else status,
        started=sample.started_at,
        duration=seconds_between(sample.started_at, sample.completed_at) if seconds is None else seconds,
        turns=count_of(sample.turn_count) or sample.message_count,
        retries=sample.retries,
        error=error_text(sample.error),
        extra=sample.metadata or None,
        **{name: total(usage.get(key) for usage in usages for key in keys) for name, keys in _USAGE.items()},
    )


def _values(sample: Any, headline: Any) -> dict[str, Any]:
    """Return the values of a sample's scores by scorer, that of the headline first."""
    scores = sample.scores if isinstance(sample.scores, dict) else {}
    return {name: part_of(scores[name], "value") for name in sorted(scores, key=lambda name: name != headline)}


def _attached(value: Any, attachments: Mapping[str, Any]) -> Any:
    """Put texts that were stored once back in their places."""
    if isinstance(value, str) and value.startswith("attachment://"):
        return attachments.get(value.removeprefix("attachment://"), value)
    if isinstance(value, list):
        return [_attached(item, attachments) for item in value]
    if isinstance(value, dict):
        return {key: _attached(item, attachments) for key, item in value.items()}
    return value
