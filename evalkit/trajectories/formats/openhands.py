"""OpenHands: output logs of versions 0.x and 1.x with their reports, and results of the OpenHands index.

…/MODEL_maxiter_N/{metadata.json, output.jsonl, output.critic_attempt_K.jsonl, output.report.json}
…/MODEL_maxiter_N/{metadata.json, output.jsonl, output.swebench_eval.jsonl or report.json}         0.x
results/MODEL/{metadata.json, scores.json, instance_results/BENCHMARK.json}                        index
"""

import os
import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from evalkit._text import counted_noun
from evalkit.io.text import cut_end
from evalkit.kinds import Parsed
from evalkit.trajectories.chat import Message, OpenNamed, chat_messages
from evalkit.trajectories.json_lines import decoded, named_counts
from evalkit.trajectories.json_values import count_of, number_of, objects, part_of, text_of
from evalkit.trajectories.records import Fact, Published, Rows, Runs, counted, run_row, score_rows, stated_by, used

FORMAT = "OpenHands"
ENCODED = frozenset(("history", "instance", "instruction"))  # large values that stay encoded until they are needed
_OUTPUT, _METADATA = "OpenHands output log", "OpenHands metadata file"
_INDEX, _INDEX_SCORES = "OpenHands index log", "OpenHands index scores file"
_ATTEMPT = re.compile(r"\.critic_attempt_(\d+)\.jsonl$")
_MODEL_FOLDER = re.compile(r"(.+)_maxiter_\d+")
_SPENT = ("tokens_in", "tokens_cache", "tokens_out", "cost")
_ENDINGS = (  # status by error text; the first matching pattern counts
    ("error", re.compile(r"instance failed after|timeout after", re.IGNORECASE)),
    ("stuck_in_loop", re.compile(r"stuck in a loop|AgentStuck", re.IGNORECASE)),
    ("max_iterations", re.compile(r"max(imum)?[ _]?iteration", re.IGNORECASE)),
    ("max_budget", re.compile(r"max(imum)?[ _]?budget", re.IGNORECASE)),
)
_SILENT = {"CondensationRequest", "ConversationStateUpdateEvent", "LLMCompletionLogEvent", "TokenEvent"}
_KINDS = {  # known kinds of events: action and observation in 0.x, all others in 1.x
    *("action", "observation", "MessageEvent", "ActionEvent", "ObservationEvent", "ACPToolCallEvent"),
    *("AgentErrorEvent", "UserRejectObservation", "SystemPromptEvent", "Condensation", "CondensationSummaryEvent"),
    *("ConversationErrorEvent", "HookExecutionEvent", "PauseEvent", "InterruptEvent", "StreamingDeltaEvent", *_SILENT),
}
_SPEAKING = ("ActionEvent", "MessageEvent", "action")  # kinds of events that are turns if the agent caused them


def recognises(value: Any) -> str:
    """Return the title of an output log, a metadata file or an index file; empty for anything else."""
    first = value[0] if isinstance(value, list) and value else value
    keys = first.keys() if isinstance(first, dict) else set()
    if {"instance_id", "test_result"} <= keys:
        return _OUTPUT
    if not isinstance(value, dict):
        is_scores = {"benchmark", "metric"} <= keys and keys & {"full_archive", "agent_version", "submission_time"}
        return _INDEX_SCORES if is_scores else ""
    is_metadata = {"dataset", "max_iterations"} <= keys and keys & {"llm", "llm_config"}
    if is_metadata or ({"agent_name", "model"} <= keys and keys & {"agent_version", "openness", "directory_name"}):
        return _METADATA
    first_values = list(islice(value.values(), 5))
    is_index = all(
        isinstance(one, dict) and ({"resolved", "cost"} <= one.keys() or [*one] == ["resolved"]) for one in first_values
    )
    return _INDEX if is_index and first_values else ""


def parse(path: str, value: Any) -> Parsed:
    """Return the runs in an output log or an index file, or the facts about runs in any other file."""
    title = recognises(value) if isinstance(value, (dict, list)) else ""
    if title == _METADATA:
        return used(facts=[Fact(FORMAT, value=text_of(_shared(value)))])
    if title == _INDEX_SCORES:
        return _index_scores(value)
    if title == _INDEX:
        return _index_runs(path, value)
    return _output([value] if isinstance(value, dict) else value)


def _output(rows: Iterable[Any]) -> Parsed:
    """Return the runs in an output log and the outcomes that its lines report. The last line of an instance counts."""
    runs: dict[str, tuple] = {}
    scores: dict[str, list[tuple]] = {}
    facts: dict[str, Fact] = {}
    unknown = Counter[str]()
    others = repeated = 0
    for row in rows:
        instance = text_of(row.get("instance_id")) if isinstance(row, dict) else ""
        if not instance:
            others += 1
            continue
        repeated += instance in runs
        result = row.get("test_result")
        runs[instance] = _run(instance, row, unknown)
        scores[instance] = score_rows(instance, _scores(result))
        if verdict := _verdict(part_of(result, "report")):
            facts[instance] = Fact("outcome", instance, value=verdict)
    reasons = [named_counts(unknown, "event")]
    if others:
        reasons.append(f"{counted_noun(others, 'line')} without an instance left out")
    if repeated:
        reasons.append(f"{counted_noun(repeated, 'instance')} repeated: the last line counts")
    if not runs:
        return Parsed("failed", "no line of it is of an instance")
    every_score = [row for own in scores.values() for row in own]
    stated = [*facts.values(), *(Fact("unknown", name, value=str(n)) for name, n in unknown.items())]
    return used([*runs.values()], every_score, facts=stated, reason=", ".join(filter(None, reasons)))


def _run(instance: str, row: dict[str, Any], unknown: Counter[str]) -> tuple:
    metadata = row.get("metadata")
    shared = _shared(metadata) if isinstance(metadata, dict) else {}
    patch = part_of(row.get("test_result"), "git_patch")
    events = _events(row)
    unknown.update(_kind(event) for event in events if _kind(event) not in _KINDS)
    times = [event["timestamp"] for event in events if event.get("timestamp")] or [None]
    responses = {  # ids of the model's responses, each of which may contain several tool calls
        text_of(event.get("llm_response_id")) or at
        for at, event in enumerate(events)
        if event.get("source") == "agent" and _kind(event) in _SPEAKING
    }
    error = text_of(row.get("error"))
    ending, reason = "completed", ""
    if error:
        ending = next((name for name, words in _ENDINGS if words.search(error)), "error")
        reason = cut_end(error.partition("\n")[0], 200) if ending == "error" else ending.replace("_", " ")
    is_empty = isinstance(patch, str) and not patch.strip()
    first_id = next((text_of(event["id"]) for event in events if len(text_of(event.get("id"))) >= 32), "")
    attempt = count_of(row.get("attempt"))
    usage = part_of(row.get("metrics"), "accumulated_token_usage")
    read = count_of(part_of(usage, "prompt_tokens"))
    return run_row(
        **shared,
        part=instance,
        log_id=first_id and f"{instance} {first_id}",
        format=FORMAT,
        task_id=instance,
        status="empty_patch" if is_empty and ending != "error" else ending,
        exit_reason=reason,
        error=error or None,
        started=times[0],
        ended=times[-1],
        turns=len(responses) or None,
        extra={"attempt": attempt} if attempt is not None else None,
        tokens_cache=count_of(part_of(usage, "cache_read_tokens")) if read else None,
        **counted(
            tokens_in=read,
            tokens_out=count_of(part_of(usage, "completion_tokens")),
            cost=number_of(part_of(row.get("metrics"), "accumulated_cost")),
        ),
    )


def _events(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the events in a line. The oldest versions log pairs of an action and its observation."""
    events: list[Any] = []
    history = decoded(row.get("history"))
    if isinstance(history, list):
        for event in history:
            events += event if isinstance(event, list) else [event]
    return [event for event in events if isinstance(event, dict)]


def _kind(event: Mapping[str, Any]) -> str:
    """Return the kind of an event; in 0.x, this is ``action`` or ``observation``."""
    return text_of(event.get("kind")) or next((name for name in ("action", "observation") if name in event), "no kind")


def _shared(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns that metadata state for all runs in an output log, or for all runs of a model in the index."""
    agent_type = text_of(metadata.get("agent_type"))
    agent = metadata.get("agent_name") or metadata.get("acp_agent_name") or metadata.get("agent_class") or agent_type
    version = metadata.get("agent_version") or metadata.get("openhands_sdk_version") or metadata.get("git_commit")
    if agent_type.startswith("acp") or metadata.get("acp_agent_name"):
        version = metadata.get("acp_agent_version")
    llm = metadata.get("llm") or metadata.get("llm_config")
    most = metadata.get("max_iterations")
    return {
        "model_name": text_of(metadata.get("model") or metadata.get("acp_model") or part_of(llm, "model")),
        "agent": FORMAT if agent in ("", "default") else text_of(agent),
        "agent_version": text_of(version),
        "dataset": text_of(metadata.get("dataset")),
        "limits": f"max_iterations {text_of(most)}" if most else "",
        "temperature": number_of(part_of(llm, "temperature")),
    }


def _scores(result: Any) -> dict[str, Any]:
    """Return the scores in a test result, which each benchmark stores differently."""
    given: dict[str, Any] = {name: part_of(result, name) for name in ("score", "resolved")}
    given["passed"] = part_of(result, "eval_result", "passed")
    reached, highest = (number_of(part_of(result, "final_score", name)) for name in ("result", "total"))
    if reached is not None and highest:
        given["final_score"] = reached / highest
    return {name: value for name, value in given.items() if number_of(value) is not None}


def _verdict(report: Any) -> str:
    """Return the status in the report of a line, named as in SWE-bench's reports."""
    if not isinstance(report, dict):
        return ""
    if report.get("resolved"):
        return "resolved"
    if report.get("error_eval") or report.get("test_timeout"):
        return "error"
    return "empty_patch" if report.get("empty_generation") else "unresolved"


def _index_runs(path: str, value: dict[str, Any]) -> Parsed:
    """Return a run for each instance of a benchmark. The folder names the model unless its metadata file does."""
    folder, name = posixpath.split(path.replace("\\", "/"))
    if posixpath.basename(folder) == "instance_results":
        folder = posixpath.dirname(folder)
    shared = {"format": FORMAT, "dataset": name.removesuffix(".json"), "model_name": posixpath.basename(folder)}
    runs: list[tuple] = []
    scores: list[tuple] = []
    for instance, one in value.items():
        if isinstance(one, dict):
            runs.append(run_row(**shared, part=instance, task_id=instance, **counted(cost=number_of(one.get("cost")))))
            scores += score_rows(instance, _scores(one))
    return used(runs, scores)


def _index_scores(value: list[Any]) -> Parsed:
    """Return the figures that the index publishes (rates as shares), and the agent's version for each benchmark."""
    facts, published = list[Fact](), list[Published]()
    for one in objects(value):
        benchmark, components = text_of(one.get("benchmark")), part_of(one, "component_scores")
        about = text_of({"agent_version": text_of(one.get("agent_version"))})
        facts.append(Fact(FORMAT, benchmark, value=about))
        figures = {text_of(one.get("metric")) or "score": one.get("score")}
        figures |= {name: figure for name, figure in (components or {}).items() if name.endswith("_accuracy")}
        amounts = {name: one.get(name) for name in ("cost_per_instance", "average_runtime")}
        for metric, figure in (figures | amounts).items():
            if (number := number_of(figure)) is not None:
                n = count_of(part_of(components, f"{metric.removesuffix('_accuracy')}_total"))
                shown = number if metric in amounts else number / 100
                published.append(Published(dataset=benchmark, metric=metric, value=shown, n=n))
    return used(facts=facts, published=published)


def context_files(files: Iterable[str]) -> Iterator[str]:
    """Yield the paths where metadata and reports of output logs and index files may be."""
    for path in files:
        folder, name = posixpath.split(path)
        if name.startswith("output") and name.endswith(".jsonl"):
            yield from (f"{folder}/{other}" for other in ("metadata.json", "report.json"))
            yield path.removesuffix(".jsonl") + ".report.json"
        elif posixpath.basename(folder) == "instance_results":
            yield from (f"{posixpath.dirname(folder)}/{other}" for other in ("metadata.json", "scores.json"))


def join(runs: Runs, facts: Rows, published: Rows) -> None:
    """Fill in what metadata state. Keep one run for each instance of an output log, with the spend of all attempts."""
    stated: dict[str, list[dict[str, Any]]] = {}  # by folder; values that apply to all runs come first
    for file, benchmark, values in sorted(stated_by(facts, FORMAT), key=lambda fact: bool(fact[1])):
        stated.setdefault(os.path.dirname(file), []).append({"dataset": benchmark} | values)
    for figure in published:
        for values in stated.get(os.path.dirname(figure["source"]), ()):
            for column in ("model_name", "agent"):
                figure[column] = figure[column] or values.get(column) or None
    files: dict[tuple[str, str, str], list[Any]] = {}  # runs by folder, output log and instance
    for run in runs:
        if run.format != FORMAT:
            continue
        folder, name = os.path.split(run.source)
        is_index = os.path.basename(folder) == "instance_results"
        for values in stated.get(os.path.dirname(folder) if is_index else folder, ()):
            if values["dataset"] not in (None, "", run.dataset) and is_index:
                continue
            for column, value in values.items():
                if value not in (None, "") and (is_index or getattr(run, column) in (None, "")):
                    setattr(run, column, value)
        if not run.model_name and (called := _MODEL_FOLDER.match(os.path.basename(folder))):
            run.model_name, run.model_source = called[1], "folder"
        if not is_index:
            files.setdefault((folder, name.partition(".")[0], run.part), []).append(run)
    for same in files.values():
        if len(same) == 1:
            continue
        own = max(same, key=lambda run: _importance(run.source))
        for run in same:
            run.is_left_out = run is not own
        attempts = [run for run in same if _ATTEMPT.search(run.source)]
        if own.log_id not in [run.log_id for run in attempts]:
            attempts.append(own)  # this attempt has no file of its own
        for column in _SPENT:
            spent = [getattr(run, column) for run in attempts]
            setattr(own, column, None if None in spent else sum(spent))
        own.retries = len(attempts) - 1 or None


def _importance(source: str) -> tuple[int, int]:
    """Return a sort key for the files of an instance: attempts first, then the copy with reports, then the output."""
    if attempt := _ATTEMPT.search(source):
        return 0, int(attempt[1])
    return (1 if source.endswith(".swebench_eval.jsonl") else 2), 0


def is_report_of(report: str, source: str) -> bool:
    """Return whether a file reports outcomes of an output log: the log itself or a report in its folder."""
    folder, name = os.path.split(source)
    stem = name.removesuffix(".jsonl").removesuffix(".swebench_eval")
    names = (name, f"{stem}.report.json", f"{stem}.swebench_eval.jsonl", "report.json")
    return os.path.dirname(report) == folder and os.path.basename(report) in names


def by_part(rows: Iterable[Any]) -> dict[str, Any]:
    """Return the line of each instance, as `messages` needs them."""
    parts: dict[str, Any] = {}
    for row in rows:
        if isinstance(row, dict) and "instance_id" in row:
            parts[text_of(row["instance_id"])] = row
        elif isinstance(row, dict):
            parts |= row  # an index file
    return parts


def messages(parts: Mapping[str, Any], part: str, open_named: OpenNamed) -> list[Message]:
    """List the messages of a run: from its events, or else its instruction; then its patch, scores and error."""
    row = parts[part]
    if "test_result" not in row:
        return [Message("system", f"resolved = {text_of(row.get('resolved'))}", "index")]
    events, by_response = _events(row), dict[str, dict[str, Any]]()
    if any("kind" in event for event in events):
        chat = [message for event in events for message in _chat(event, by_response)]
    else:
        chat = list(_chat_before_1(events))
    spoken = chat_messages(chat)
    if not spoken and (instruction := text_of(decoded(row.get("instruction")))):
        spoken.append(Message("user", instruction))
    if patch := text_of(part_of(row["test_result"], "git_patch")):
        spoken.append(Message("system", patch, "patch"))
    for key, score in _scores(row["test_result"]).items():
        spoken.append(Message("system", f"{key} = {text_of(score)}", "score"))
    if error := text_of(row.get("error")):
        spoken.append(Message("error", error))
    return spoken


def _chat(event: dict[str, Any], by_response: dict[str, dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield a 1.x event as chat messages. Tool calls from the same response of the model share one message."""
    kind, call_id = _kind(event), event.get("tool_call_id")
    message = {"timestamp": event.get("timestamp")}
    answer = {"role": "tool", "name": event.get("tool_name"), "tool_call_id": call_id}
    if kind == "MessageEvent" and isinstance(event.get("llm_message"), dict):
        yield message | event["llm_message"]
    elif kind in ("ActionEvent", "ACPToolCallEvent"):
        name = part_of(event, "tool_call", "name") or event.get("tool_name") or event.get("title")
        arguments = part_of(event, "tool_call", "arguments") or event.get("raw_input") or event.get("action")
        call = {"id": call_id, "name": name, "arguments": arguments}
        response = text_of(event.get("llm_response_id") or call_id)
        if response not in by_response:
            reasoning = event.get("reasoning_content")
            reasoning = reasoning or [block.get("thinking") for block in objects(event, "thinking_blocks")]
            message |= {"role": "assistant", "content": event.get("thought"), "reasoning_content": reasoning}
            by_response[response] = message | {"tool_calls": [call]}
            yield by_response[response]
        elif kind == "ActionEvent":
            by_response[response]["tool_calls"].append(call)
        if output := event.get("raw_output") or event.get("content"):  # later ACP events of a call update its output
            yield answer | {"content": output, "error": event.get("status") == "failed"}
    elif kind in ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation"):
        observation = event.get("observation")
        error = event.get("error") or event.get("rejection_reason") or part_of(observation, "error")
        given = part_of(observation, "content") or part_of(observation, "output")
        if not given:
            given = error if isinstance(error, str) else _without(observation, "kind")
        yield message | answer | {"content": given, "error": bool(error or part_of(observation, "is_error"))}
    elif kind not in _SILENT:
        given = part_of(event, "system_prompt", "text") or event.get("summary") or event.get("detail")
        given = given or _without(event, "kind", "id", "timestamp", "source")
        name = "" if kind == "SystemPromptEvent" else kind
        yield message | {"role": "system", "name": name, "content": given}


def _without(value: Any, *keys: str) -> dict[str, Any] | None:
    """Return an object without the given keys, or None if the value is not an object."""
    return {key: one for key, one in value.items() if key not in keys} if isinstance(value, dict) else None


def _chat_before_1(events: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield 0.x events as chat messages. An observation names the action that caused it."""
    last: Any = None  # id of the last action; in the oldest histories, its observation follows without naming it
    called = set[str]()
    for event in events:
        message = {"timestamp": event.get("timestamp")}
        action, observation = text_of(event.get("action")), text_of(event.get("observation"))
        given = event["args"] if isinstance(event.get("args"), dict) else {}
        cause = text_of(event.get("cause", last))
        if action in ("message", "system"):
            roles = {"user": "user", "agent": "assistant"}
            role = action if action == "system" else roles.get(text_of(event.get("source")), "assistant")
            yield message | {"role": role, "content": given.get("content") or event.get("message")}
        elif action and event.get("source") in ("agent", None):
            last = text_of(event.get("id")) or f"call {len(called)}"
            called.add(last)
            arguments = {key: one for key, one in given.items() if key != "thought" and one not in (None, "")}
            call = {"id": last, "name": action, "arguments": arguments}
            yield message | {"role": "assistant", "content": given.get("thought"), "tool_calls": [call]}
        elif observation and (cause in called or observation not in ("agent_state_changed", "recall", "null")):
            called.discard(cause)
            answer = {"role": "tool", "name": observation, "tool_call_id": cause, "content": event.get("content")}
            yield message | answer | {"error": observation == "error"}
