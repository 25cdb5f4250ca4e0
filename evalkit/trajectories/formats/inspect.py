"""inspect_ai 0.3: logs as JSON, and as ``.eval`` archives, from which runs need only the header and the summaries."""

import io
import struct
import zipfile
import zlib
from collections.abc import Callable
from functools import partial
from itertools import chain
from types import GenericAlias
from typing import Any, BinaryIO, NamedTuple

import msgspec
import pyarrow as pa

from evalkit.io import decode_json
from evalkit.io.paths import (
    LimitError,
    check_document,
    check_members,
    check_size,
    check_text,
    count_values,
    most_bytes,
    most_unchecked,
)
from evalkit.io.read import ANYTHING
from evalkit.io.text import map_texts
from evalkit.kinds import Parsed
from evalkit.kinds.errors import RAISED
from evalkit.trajectories.chat import Message, OpenNamed, chat_messages, content_text
from evalkit.trajectories.json_values import count_of, error_text, objects, part_of, seconds_between, text_of, total
from evalkit.trajectories.records import Plan, Published, run_rows, score_rows, used

# scores of grades: correct, incorrect, partly correct, no answer; the rest as in `value_to_float` of inspect_ai
GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0, "yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0}
_MEMBER = struct.Struct("<4s4xH4x3L2H")  # local header of a zip member: method, CRC, sizes, lengths of name and extra
_ENTRY = 9  # memory in bytes that `zipfile` needs per byte of the central directory
_LISTED = struct.Struct("<4s6xH4x3LH12xL")  # its entry in the central directory, up to the name; ends with its offset
_LIMITS = ("message_limit", "max_messages", "token_limit", "time_limit", "working_limit", "cost_limit", "turn_limit")


def _reads(name: str, fields: str, **typed: Any) -> Any:
    """Return a type with only the fields to decode, since others, such as `model_args`, may contain credentials."""
    own = [(field, of_type | None, None) for field, of_type in typed.items()]
    return msgspec.defstruct(name, [*own, *((field, Any, None) for field in fields.split())], omit_defaults=True)


_TOKENS = "input_tokens input_tokens_cache_read input_tokens_cache_write output_tokens total_tokens total_cost"
_USAGE = _reads("Usage", "", **dict.fromkeys(_TOKENS.split(), int | float))
_SCORE = _reads("Score", "value answer")
_SAMPLE = _reads(  # a sample or its summary, without the events, which are its largest part
    "Sample",
    "id uuid target metadata error limit started_at completed_at completed message_count turn_count retries"
    " error_retries",
    epoch=int,
    total_time=float,
    scores=GenericAlias(dict, (str, _SCORE)),
    score=_SCORE,
    model_usage=GenericAlias(dict, (str, _USAGE)),
)
_SPOKEN = _reads("Spoken", "id messages attachments transcript error", epoch=int)
_SAMPLES = GenericAlias(list, (_SAMPLE,))
_EVALUATION = _reads(
    "Evaluation",
    "task model task_id task_args task_version eval_id created model_generate_config dataset config solver",
)
_LOG = msgspec.json.Decoder(
    _reads("Log", "status error results reductions plan lost", excerpt_of=str, eval=_EVALUATION, samples=_SAMPLES)
)
_SUMMARIES, _SUMMARY, _MESSAGES = (msgspec.json.Decoder(one) for one in (_SAMPLES, _SAMPLE, _SPOKEN))
_TRANSCRIPTS = msgspec.json.Decoder(_reads("Transcripts", "", samples=GenericAlias(list, (_SPOKEN,))))
EXCERPT = b'{"excerpt_of":"inspect_ai"'  # first bytes of each excerpt


def recognises(value: Any) -> str:
    """Return ``inspect_ai log`` for a decoded log or the start of one; empty for anything else."""
    keys = part_of(value, "eval") or {}
    return "inspect_ai log" if "task" in keys and ("run_id" in keys or "model" in keys) else ""


def is_archive(data: bytes) -> bool:
    """Return whether data starts like an archive of inspect_ai."""
    return data.startswith(b"PK") and any(name in data[:400] for name in (b"_journal/", b"header.json", b"samples/"))


def excerpt(file: BinaryIO) -> bytes:
    """Return the runs in an archive as a JSON log, from its header and summaries or else from all intact members."""
    header, summaries = _header_and_summaries(file)
    if header.startswith(b"{") and b'"model_usage"' in summaries:  # complete, so `parse` can decode them as they are
        return EXCERPT + b"," + header[1:-1] + b',"samples":' + summaries + b"}"
    members, lost = _members(file)
    size = 0

    def read(name: str, decoder: msgspec.json.Decoder) -> Any:
        nonlocal size
        try:
            if name not in members:
                return None
            data = _unpacked(file, members[name])
            size += len(data)
            check_size(size)
            return _decoded(data, decoder)
        except LimitError:
            raise
        except Exception:
            lost.append(f"{name} is broken")
            del members[name]
            return None

    log: Any = read("header.json", _LOG)
    if log is None:
        if (log := read("_journal/start.json", _LOG)) is None:
            raise ValueError(", ".join(lost) or "neither a header nor a journal")
        log.status = "started"
    samples: dict[str, msgspec.Raw] = {}  # JSON takes less memory than objects
    known: set[str] = set()  # parts with a complete summary; summaries of 2024 have fewer fields
    listed = read("summaries.json", _SUMMARIES)
    journal = [name for name in members if name.startswith("_journal/summaries/")] if listed is None else []
    for part in chain([listed], (read(name, _SUMMARIES) for name in journal)):
        for one in part or ():
            samples[_part(one)] = msgspec.Raw(msgspec.json.encode(one))
            if one.model_usage is not None:
                known.add(_part(one))
    for name in list(members):
        if name.startswith("samples/") and name[8:-5] not in known and (one := read(name, _SUMMARY)) is not None:
            samples[_part(one)] = msgspec.Raw(msgspec.json.encode(one))
    log.reductions = log.reductions or (None if samples else read("reductions.json", ANYTHING))
    log.samples = list(samples.values())
    log.lost = ", ".join(lost[:4])
    log.excerpt_of = "inspect_ai"
    return msgspec.json.encode(log)


def parse(path: str, data: bytes) -> Parsed:
    """Return the runs in a log. If the log is still being written, these are the runs that have a summary so far."""
    log = _decoded(excerpt(io.BytesIO(data)) if is_archive(data) else data, _LOG)
    samples, evaluation = log.samples or _reduced(log), log.eval
    config = evaluation.config or {}
    task, arguments = text_of(evaluation.task), evaluation.task_args
    shared = {
        "format": "inspect_ai",
        "experiment": evaluation.task_id,
        "created": evaluation.created,
        "dataset": f"{task} {text_of(arguments)}" if arguments else task,
        "task_checksum": evaluation.task_version or None,
        "model_name": evaluation.model,
        "agent": evaluation.solver,
        "limits": ", ".join(f"{name} {config[name]}" for name in _LIMITS if config.get(name) is not None),
        "temperature": part_of(evaluation.model_generate_config or part_of(log.plan, "config"), "temperature"),
    }
    parts = list(map(_part, samples))
    scores: list[tuple] = []
    answers: list[int | None] = []
    headline = text_of(part_of(log.results, "headline", "scorer"))
    only_scorer = text_of(part_of(log.results, "scorer", "name")) or "score"  # logs of early 2024
    for part, sample in zip(parts, samples, strict=True):
        by_scorer = sample.scores or ({only_scorer: sample.score} if sample.score else {})
        if headline in by_scorer:  # put it first, since the first score counts
            by_scorer = {headline: by_scorer[headline], **by_scorer}
        stated = [score.answer for score in by_scorer.values() if isinstance(score.answer, str)]
        answers.append(len(stated[0].strip()) if stated else None)
        scores += score_rows(part, {name: score.value for name, score in by_scorer.items()}, GRADES)
    epochs, ids = count_of(config.get("epochs")) or 1, part_of(evaluation.dataset, "sample_ids")
    model, dataset = text_of(evaluation.model) or None, shared["dataset"]
    planned = count_of(part_of(log.results, "total_samples"))
    if not planned and (size := count_of(part_of(evaluation.dataset, "samples"))):
        planned = min(size, count_of(config.get("limit")) or size) * epochs
    plans: list[Plan] = []
    if ids and isinstance(ids, list):
        plans = [Plan(model, dataset, text_of(one), planned=epochs) for one in ids]
    elif planned or not samples:
        plans = [Plan(planned=planned or None)]
    own_id = evaluation.eval_id or f"{evaluation.task_id} {evaluation.created}"  # no eval_id in 2024
    endings = [_ending(one, log.status) for one in samples]
    usages = list(map(_usage, samples))
    columns = {
        "part": parts,
        "log_id": [one.uuid or f"{own_id} {part}" for one, part in zip(samples, parts, strict=True)],
        "task_id": [one.id for one in samples],
        "repetition": [(one.epoch or 1) - 1 for one in samples],
        "started": [one.started_at for one in samples],
        "duration": [
            seconds_between(one.started_at, one.completed_at) if one.total_time is None else one.total_time
            for one in samples
        ],
        "turns": [one.turn_count or one.message_count for one in samples],
        "retries": [one.retries or len(one.error_retries or ()) or None for one in samples],
        "target": [content_text(one.target) for one in samples],
        "answer_length": answers,
        "error": [one.error and error_text(one.error) for one in samples],
        "extra": [one.metadata or None for one in samples],
        "status": [one.status for one in endings],
        "exit_reason": [one.reason for one in endings],
        "tokens_in": [one.tokens_in for one in usages],
        "tokens_cache": [one.tokens_cache for one in usages],
        "tokens_out": [one.tokens_out for one in usages],
        "cost": [one.cost for one in usages],
    }
    runs = run_rows(columns, shared)
    reasons = [log.lost]
    if not log.samples:
        reasons.append("it contains no samples; scores are over all epochs" if runs else "it contains no samples")
        reasons.append(error_text(log.error))
    published: list[Published] = []
    solver = text_of(evaluation.solver) or None
    for one in objects(log.results, "scores"):
        values = (part_of(one, "metrics", metric, "value") for metric in ("accuracy", "mean"))
        value = next((value for value in values if isinstance(value, int | float)), None)
        is_whole = count_of(part_of(log.results, "total_samples")) in (None, len(samples))  # else it is of other runs
        if is_whole and one.get("reducer") in (None, "mean"):
            published.append(Published(model, solver, dataset, metric=one.get("name"), value=value, n=len(samples)))
    return used(runs, scores, plans, published=published, reason=", ".join(filter(None, reasons)))


class _Ending(NamedTuple):
    """The status of a sample, and the reason why it ended."""

    status: str
    reason: str


def _ending(sample: Any, of_log: Any) -> _Ending:
    if of_log == "started" and sample.completed is False:
        return _Ending("running", "")
    if sample.error:  # the traceback or the message names the exception type
        last = text_of(part_of(sample.error, "traceback")).rstrip().rpartition("\n")[2]
        raised = RAISED.match(last) or RAISED.match(error_text(sample.error))
        return _Ending("error", raised[1] if raised else "error")
    if not sample.limit:
        was_cancelled = of_log == "cancelled" and not (sample.scores or sample.score)
        return _Ending("cancelled", "cancellation") if was_cancelled else _Ending("", "")
    limit = text_of(part_of(sample.limit, "type") or sample.limit)
    return _Ending(f"limit_{limit}", f"{limit} limit")


class _Usage(NamedTuple):
    """Tokens that were read, of these from a cache, tokens that were written, and the cost."""

    tokens_in: float | None = None
    tokens_cache: float | None = None
    tokens_out: float | None = None
    cost: float | None = None


def _usage(sample: Any) -> _Usage:
    """Return the usage of a sample, summed over its models."""
    rows = [
        _Usage(_tokens_read(one), one.input_tokens_cache_read, one.output_tokens, one.total_cost)
        for one in (sample.model_usage or {}).values()
    ]
    return rows[0] if len(rows) == 1 else _Usage(*map(total, zip(*rows, strict=True)))


def _tokens_read(usage: Any) -> float:
    """Return the tokens that a model read, whether or not its provider includes cached tokens in the input tokens."""
    given = usage.input_tokens or 0
    summed = given + (usage.input_tokens_cache_read or 0) + (usage.input_tokens_cache_write or 0)
    if given == summed or not usage.total_tokens:
        return summed
    return min(summed, max(given, usage.total_tokens - (usage.output_tokens or 0)))


def _reduced(log: Any) -> list[Any]:
    """Return samples made from the reductions of a log without samples, with scores over all epochs."""
    samples: dict[str, Any] = {}
    for reduction in log.reductions or part_of(log.results, "sample_reductions") or ():
        for one in objects(reduction, "samples"):
            sample = samples.setdefault(text_of(one.get("sample_id")), _SAMPLE(id=one.get("sample_id"), scores={}))
            sample.scores.setdefault(text_of(reduction.get("scorer")), _SCORE(value=one.get("value")))
    return list(samples.values())


def samples_of(data: bytes) -> Callable[[str], Any]:
    """Return a function that returns the sample of a part. It decodes samples of an archive only on request."""
    if not is_archive(data):
        return {_part(one): one for one in _decoded(data, _TRANSCRIPTS).samples or ()}.__getitem__
    file = io.BytesIO(data)
    members, _ = _members(file)

    def sample(part: str) -> Any:
        return _decoded(_unpacked(file, members[f"samples/{part}.json"]), _MESSAGES)

    return sample


def messages(samples: Callable[[str], Any], part: str, open_named: OpenNamed) -> list[Message]:
    """List the messages of one sample in a log."""
    sample = samples(part)
    attachments = sample.attachments or part_of(sample.transcript, "content") or {}  # in the transcript in 2024
    size = 0

    def attached(text: str) -> Any:
        """Replace a reference by the attached text; raise LimitError if all of these are too long."""
        nonlocal size
        if not text.startswith("attachment://"):
            return text
        found = attachments.get(text.removeprefix("attachment://"), text)
        size += len(str(found))
        check_text(size)
        return found

    spoken = chat_messages(map_texts(sample.messages, attached))
    return [*spoken, Message("error", error_text(sample.error))] if sample.error else spoken


def _members(file: BinaryIO) -> tuple[dict[str, zipfile.ZipInfo], list[str]]:
    """Return the members of an archive by name, and problems. From a truncated archive, return the intact members."""
    if end := zipfile._EndRecData(file):  # type: ignore[attr-defined]
        check_size(_ENTRY * end[5])  # size of the directory in bytes
    try:
        with zipfile.ZipFile(file) as archive:
            check_members(archive.infolist())
            return {info.filename: info for info in archive.infolist()}, []
    except zipfile.BadZipFile:
        file.seek(0)
        data = file.read(most_bytes())
    found, at = {}, 0
    while 0 <= at <= len(data) - _MEMBER.size:
        _, method, check_sum, packed, size, name_size, extra_size = _MEMBER.unpack_from(data, at)
        start = at + _MEMBER.size + name_size + extra_size
        name = data[at + _MEMBER.size :][:name_size].decode("utf-8", "replace")
        if start + packed <= len(data):
            found[name] = _member(name, at, method, check_sum, packed, size)
        at = data.find(b"PK\x03\x04", start + packed)
    return found, ["the archive has no end"]


def _member(name: str, place: int, method: int, check_sum: int, packed: int, size: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.header_offset = place
    info.compress_type = method
    info.CRC = check_sum
    info.compress_size = packed
    info.file_size = size
    return info


def _header_and_summaries(file: BinaryIO) -> list[bytes]:
    """Return header and summaries if the directory lists them last, without reading all of it; else empty bytes."""
    file.seek(max(0, file.seek(0, io.SEEK_END) - 65_536))  # the end of the central directory
    tail, found = file.read(), []
    try:
        for name in ("header.json", "summaries.json"):
            at = tail.rindex(name.encode()) - _LISTED.size
            mark, *facts, name_size, place = _LISTED.unpack_from(tail, at)
            if mark != b"PK\x01\x02" or name_size != len(name):
                raise zipfile.BadZipFile(f"{name} is not listed last")
            found.append(_unpacked(file, _member(name, place, *facts)).strip())
    except Exception:  # the caller reads the whole directory, which shows the problem
        return [b"", b""]
    return found


def _unpacked(file: BinaryIO, info: zipfile.ZipInfo) -> bytes:
    """Unpack a member of an archive. `zipfile` does not support Zstandard before Python 3.14."""
    check_size(info.file_size)
    file.seek(info.header_offset + 26)
    name_size, extra_size = struct.unpack("<HH", file.read(4))  # from the member's local header
    file.seek(name_size + extra_size, io.SEEK_CUR)
    data, most = file.read(info.compress_size), info.file_size or most_bytes() + 1
    if info.compress_type == 93:  # Zstandard
        with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
            data = stream.read(most)
    elif info.compress_type == zipfile.ZIP_DEFLATED:
        data = zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, most)
    check_size(len(data))
    if info.CRC and zlib.crc32(data) != info.CRC:
        raise zipfile.BadZipFile(f"{info.filename}: its checksum differs")
    return data


def _decoded(data: bytes, decoder: msgspec.json.Decoder) -> Any:
    """Decode JSON, including NaN. The data is not copied unless necessary, since a sample may be a gigabyte."""
    try:
        check_document(data, partial(_count_read, decoder))
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return decode_json(data, decoder)[0]


def _count_read(decoder: msgspec.json.Decoder, data: bytes) -> tuple[int, int]:
    """Return upper bounds for the characters and values of JSON that a decoder decodes."""
    if len(data) <= most_unchecked():
        return len(data), len(data)
    fields = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    names = getattr(decoder.type, "__struct_fields__", fields)
    read = b",".join(value for name, value in fields.items() if name in names)
    # bytes outside these values: names, and values that a later value of the same name replaces
    others = len(data) - sum(memoryview(value).nbytes for value in fields.values())
    return len(read) + others, count_values(read) + others


def _part(sample: Any) -> str:
    return f"{text_of(sample.id)}_epoch_{1 if sample.epoch is None else sample.epoch}"
