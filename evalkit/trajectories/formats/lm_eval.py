"""lm-evaluation-harness 0.4: samples files, in which each document is a task, and results files, which name the model.

OUTPUT/ORG__MODEL/results_STAMP.json
OUTPUT/ORG__MODEL/samples_TASK_STAMP.jsonl    a line for each document and filter

Before 0.4.3, one folder contains the samples of all models, and only the results of the last one:
OUTPUT/results.json, or a name that the user chose
OUTPUT/pretrained__ORG__MODEL,ARGUMENT__VALUE_TASK.jsonl    a JSON list, without filter names
"""

import hashlib
import json
import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from evalkit._notes import NO_NOTES, note
from evalkit._text import counted_noun, listed
from evalkit.io import Entry, SourceError
from evalkit.kinds import Parsed
from evalkit.trajectories.chat import Message, OpenNamed, chat_messages
from evalkit.trajectories.json_lines import decoded
from evalkit.trajectories.json_values import count_of, number_of, objects, part_of, text_of
from evalkit.trajectories.records import (
    Fact,
    Joined,
    Plan,
    Published,
    Rows,
    Runs,
    by_file,
    run_rows,
    score_rows,
    stated_by,
    used,
)

FORMAT = "lm-eval"
ENCODED = frozenset(("doc", "arguments", "resps", "filtered_resps"))  # large values, mostly for transcripts only
_KNOWN = ENCODED | {"doc_id", "target", "filter", "metrics", "doc_hash", "prompt_hash", "target_hash"}
_STAMP = re.compile(r"_(\d{4}-\d\d-\d\dT[\d.:-]+)$")
_HOME = re.compile(r"^(?:/home/|/Users/|[A-Za-z]:\\Users\\)[^/\\]+")  # home folder, which contains a person's name
# arguments that do not affect answers, that affect them only as a repetition does, or that may contain credentials
_IRRELEVANT = re.compile(
    r"batch|num_seqs|device|parallel|gpu|cpu|memory|offload|swap|concurrent|retries|timeout|(?<!kv_)cache|log_stats|seed"
    r"|url|key|password|secret|header|cert|(?:^|api_|auth_|hf_|access_)token$|trust_remote|use_fast|download|_dir$"
)
_DEFAULTS = {"revision": "main", "dtype": "auto", "enable_thinking": "True", "temperature": "0"}  # others: False
# the model in the name of a samples file, before 0.4.3
_NAMED = re.compile(r"(?:^|,)(?:peft|delta|pretrained|model|path|engine)(?:__|=)([^,]+)")
_STATED = ("task_checksum", "agent_version", "temperature", "lower_is_better")  # run columns from the results file
_MODEL_ARGUMENTS = ("peft", "delta", "pretrained", "model", "path", "engine")  # lm-eval uses the first as the name


def recognises(value: Any) -> str:
    """Return the title of a decoded samples or results file; empty for anything else."""
    first = value[0] if isinstance(value, list) and value else value
    keys = first.keys() if isinstance(first, dict) else set()
    if {"doc_id", "doc"} <= keys and (len(keys) == 2 or keys & {"arguments", "target", "filtered_resps"}):
        return "lm-eval samples"  # two keys suffice, since only the start of a long first line is decoded
    of_tasks = part_of(value, "results")
    if not isinstance(of_tasks, dict) or not keys & {"configs", "n-samples", "versions"}:
        return ""
    has_scores = any("," in key for scores in of_tasks.values() if isinstance(scores, dict) for key in scores)
    return "lm-eval results file" if has_scores else ""


def name_parts(path: str) -> tuple[str, str, str]:
    """Return the folder of a file, the time stamp that all files of one evaluation share, and the task in its name."""
    folder, name = posixpath.split(path.replace("\\", "/"))
    stem = name.rpartition(".")[0]
    stamp = _STAMP.search(stem)
    return folder, stamp[1] if stamp else "", stem[: stamp.start() if stamp else None].removeprefix("samples_")


def parse(path: str, value: Any) -> Parsed:
    """Return the runs in a samples file, or the facts in a results file: model, settings, plan and published scores."""
    if isinstance(value, dict) and recognises(value) == "lm-eval results file":
        return _results(value)
    folder, stamp, task = name_parts(path)
    documents: dict[str, dict[str, Any]] = {}  # columns of each run, by part
    scores: list[tuple] = []
    others = 0
    has_names = True
    no_scores = set[str]()
    for part, filtered, row in _parts([value] if isinstance(value, dict) else value):
        if not part:
            others += 1
            continue
        if part not in documents:
            document, checksum = text_of(row["doc_id"]), _doc_hash(row)
            documents[part] = {
                "part": part,
                "log_id": f"{posixpath.basename(folder)} {task} {stamp} {document} {checksum} {part}",
                "task_id": document,
                "document_hash": checksum,
                "target": text_of(row.get("target")),
                "answer_length": _answer_length(row),
            }
        has_names = has_names and row.get("filter") is not None
        for metric, value in _metrics(row).items():
            if value is None or isinstance(value, (bool, int, float)):
                scores += score_rows(part, {f"{metric},{filtered}": value})
            else:
                no_scores.add(metric)
    if not documents:
        return Parsed("failed", "no line of it is a sample of lm-eval")
    first = next(iter(documents.values()))
    columns = {name: [one[name] for one in documents.values()] for name in first}
    runs = run_rows(columns, {"format": FORMAT, "dataset": task, "experiment": stamp, "agent": FORMAT})
    reasons = [f"{counted_noun(others, 'line')} without a document left out"] if others else []
    if len(scored := {row[0] for row in scores if row[2] is not None}) < len(documents):
        reasons.append(f"no metric is a number for {counted_noun(len(documents) - len(scored), 'document')}")
    if no_scores:  # such as lists of values for the parts of an answer
        reasons.append(f"values that are no numbers: {listed(sorted(no_scores))}")
    if not has_names:
        reasons.append("filters without names, in their order")
    return used(runs, scores, reason=", ".join(reasons))


def _parts(rows: Iterable[Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield each line with its part and the name of its filter. The part is empty if the line is not a sample.

    A part is a document or a further repetition of it. If lines do not name filters (before 2025), all lines of a
    document are one part, with one line for each filter.
    """
    seen = Counter[tuple[str, str]]()
    for row in rows:
        if not isinstance(row, dict) or row.get("doc_id") is None:
            yield "", "", {}
            continue
        part, filtered = text_of(row["doc_id"]), text_of(row.get("filter"))
        before = seen[part, filtered]
        seen[part, filtered] += 1
        if row.get("filter") is None:
            filtered = _unnamed(before)
        elif before:
            part = f"{part} repetition {before}"
        yield part, filtered, row


def _doc_hash(row: Mapping[str, Any]) -> str:
    """Return the digest of a document. If an older file lacks it, compute it as lm-eval does."""
    if stated := text_of(row.get("doc_hash")):
        return stated
    return hashlib.sha256(json.dumps(decoded(row.get("doc")), indent=2, ensure_ascii=False).encode()).hexdigest()


def _answer_length(row: Mapping[str, Any]) -> int | None:
    """Return the number of characters of the first answer; None if the model only rated answers, as ``[[[…]]]``."""
    match decoded(row.get("resps")):
        case [[str(answer), *_], *_]:
            return len(answer.strip())
    return None


def _metrics(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the metrics in a line, by name."""
    names = row.get("metrics")
    if not isinstance(names, list):
        names = [name for name in row if name not in _KNOWN]
    return {text_of(name): row[text_of(name)] for name in names if text_of(name) in row}


def _results(value: dict[str, Any]) -> Parsed:
    """Return the settings of each task as facts, and the scores of tasks and groups as published figures."""
    config = value.get("config")
    arguments = part_of(config, "model_args")
    if isinstance(arguments, str):  # NAME=VALUE,… before 0.4.10
        arguments = dict(one.partition("=")[::2] for one in arguments.split(","))
    named = next(filter(None, (text_of(part_of(arguments, name)) for name in _MODEL_ARGUMENTS)), "")
    model = _HOME.sub("~", text_of(value.get("model_name")) or named)
    prompts = {name: value.get(name) for name in ("chat_template", "system_instruction", "fewshot_as_multiturn")}
    facts: list[Fact] = []
    published: list[Published] = []
    plans: list[Plan] = []
    for task, scores in sorted(value["results"].items()):
        documents = count_of(part_of(value, "n-samples", task, "effective"))
        figures = scores if isinstance(scores, dict) else {}
        for key, given in figures.items():
            metric, number = key.rpartition(",")[0], number_of(given)
            if metric and not metric.endswith("_stderr") and number is not None and _is_mean(value, task, metric):
                published.append(Published(model or None, FORMAT, dataset=task, metric=key, value=number, n=documents))
        if part_of(value, "group_subtasks", task):
            continue  # groups have no samples
        if documents:
            plans.append(Plan(model or None, dataset=task, planned=documents))
        generation = part_of(value, "configs", task, "generation_kwargs")
        about = {
            "version {}": part_of(value, "versions", task),
            "{}-shot": part_of(value, "n-shot", task),
            "max_gen_toks {}": part_of(generation, "max_gen_toks"),
        }
        directions = part_of(value, "higher_is_better", task) or {}
        lower = [name for name, higher in directions.items() if higher is False and _is_mean(value, task, name)]
        settings = {
            "task_checksum": ", ".join(text.format(text_of(one)) for text, one in about.items() if one is not None),
            "agent_version": text_of(value.get("lm_eval_version")),
            "temperature": number_of(part_of(generation, "temperature")),
            "lower_is_better": lower,
            "model_name": model,
            "variant": _settings(arguments) | _settings(prompts),
            "generation": _settings(generation, except_for=("until", "max_gen_toks")),
            "documents": documents,
            "filters": [text_of(one.get("name")) for one in objects(value, "configs", task, "filter_list")],
        }
        facts.append(Fact(FORMAT, task, value=text_of(settings)))
    reason = "" if model and (named or not config) else "model_args name no model: its name is a random id"
    return used(plans=plans, facts=facts, published=published, reason=reason)


def _settings(stated: Any, except_for: Collection[str] = ()) -> dict[str, str]:
    """Return the model or generation arguments that may affect answers. Replace long values with their digest."""
    settings = dict[str, str]()
    if not isinstance(stated, dict):
        return settings
    for name, one in stated.items():
        text = text_of(int(one) if isinstance(one, float) and one.is_integer() else one)
        if text.casefold() in ("true", "false"):
            text = text.capitalize()
        if text in ("", "None", "null") or name in except_for or _IRRELEVANT.search(name):
            continue
        if len(text) > 40 or not text.isprintable():
            text = hashlib.sha256(text.encode(errors="replace")).hexdigest()[:8]
        settings[name] = _HOME.sub("~", text)
    return settings


def _is_mean(value: dict[str, Any], task: str, metric: str) -> bool:
    """Return whether a metric is the mean of its sample values. Perplexity is not: its samples are log-likelihoods."""
    metrics = objects(value, "configs", task, "metric_list")
    aggregation = next((one.get("aggregation") for one in metrics if one.get("metric") == metric), None)
    return aggregation == "mean" or (aggregation is None and not re.search("perplexity|bits_per_byte|bypass", metric))


def context_files(files: Iterable[str]) -> Iterator[str]:
    """Yield the paths of the results files that belong to samples files."""
    for path in files:
        folder, stamp, _ = name_parts(path)
        if stamp and path.endswith(".jsonl"):
            yield f"{folder}/results_{stamp}.json"


def join(runs: Runs, facts: Rows, published: Rows) -> Joined:
    """Fill in what results state about the samples with the same stamp. Number repetitions, and distinguish documents.

    The results file names the model, or else the folder does. Without a stamp, the file name does. If the results
    files of one model differ in settings, these settings become part of its name.
    """
    stated: dict[tuple[str, str, str], dict[str, Any]] = {}  # by folder, stamp and task
    for source, task, values in stated_by(facts, FORMAT):
        folder, stamp, _ = name_parts(source)
        stated[folder, stamp, task] = values | {"source": source, "task_id": task}
    if stated and not runs:
        source = min(fact["source"] for fact in stated.values())
        without = "only scores over all documents; --log_samples lets lm-eval write those of each"
        raise SourceError(f"{source}: {without}")
    names = _names(stated.values())
    for figure in published:
        figure["model_name"] = names.get(figure["source"]) or figure["model_name"]
    files = by_file(runs, FORMAT)
    filters: dict[str, dict[str, str]] = {}  # by samples file: the real name of each filter from `_unnamed`
    cut: dict[str, tuple[int, int]] = {}  # by task: number of documents with samples, and of all documents
    plan_of: dict[str, str | None] = {}
    with_samples = set[tuple[str, str, str]]()
    for source, own in files.items():
        folder, stamp, task = name_parts(source)
        model = posixpath.basename(folder).replace("__", "/", 1)
        if not stamp:
            ends = [name for of, when, name in stated if (of, when) == (folder, "") and task.endswith(f"_{name}")]
            stem, task = task, max(ends, key=len, default=task)
            if named := _NAMED.search(stem.removesuffix(f"_{task}")):
                model = _HOME.sub("~", named[1].replace("__", "/"))
        with_samples.add((folder, stamp, task))
        fact = stated.get((folder, stamp, task), {})
        filters[source] = {_unnamed(place): name for place, name in enumerate(fact.get("filters", ()))}
        if not stamp and fact.get("model_name") != model:  # the results belong to a later evaluation
            fact = {}
        plan_of[source] = fact.get("source")
        settings = {name: fact.get(name) for name in _STATED}
        settings |= {"dataset": task, "model_source": "log", "model_name": names.get(fact.get("source", "")) or model}
        if not fact:
            settings["model_source"] = "folder" if stamp else "file"
        present, of_all = len({run.task_id for run in own}), fact.get("documents") or 0
        if present < of_all:
            before, before_all = cut.get(task, (0, 0))
            cut[task] = (before + present, before_all + of_all)
        for run in own:
            for column, value in settings.items():
                setattr(run, column, None if value == "" else value)
    counts = Counter[tuple[Any, ...]]()
    of_files = (run for own in files.values() for run in own)
    for run in sorted(of_files, key=lambda run: (run.experiment or "", run.source)):
        of_model = (run.model_name, run.dataset, run.task_id, run.document_hash)
        run.repetition = counts[of_model]
        counts[of_model] += 1
    missing: dict[str, list[str]] = {}  # tasks without samples, by results file
    for place, fact in stated.items():
        if place not in with_samples:
            missing.setdefault(fact["source"], []).append(fact["task_id"])
    without = "no samples of {}, only scores over all documents"
    entries = [Entry(source, "used", without.format(listed(tasks))) for source, tasks in missing.items()]
    notes = note("samples_cut", tasks=cut) if cut else NO_NOTES
    return Joined(plan_of, entries=entries, filters=filters, notes=notes)


def _names(facts: Collection[Mapping[str, Any]]) -> dict[str, str]:
    """Return the model name for each results file, with any settings in which the results of that model differ."""
    names = {fact["source"]: fact["model_name"] for fact in facts}
    files: dict[tuple[str, str], dict[str, dict[str, str]]] = {}  # by model and task ("" for all): settings by file
    for fact in facts:
        files.setdefault((fact["model_name"], ""), {})[fact["source"]] = fact["variant"]
        files.setdefault((fact["model_name"], fact["task_id"]), {})[fact["source"]] = fact["generation"]
    different: dict[str, dict[str, str]] = {}  # settings that differ, by file
    for by_source in files.values():
        for name in dict.fromkeys(name for settings in by_source.values() for name in settings):
            default = _DEFAULTS.get(name, "False")
            if len({settings.get(name, default) for settings in by_source.values()}) > 1:
                for source, settings in by_source.items():
                    if name in settings:
                        different.setdefault(source, {})[name] = settings[name]
    for source, settings in different.items():
        if names[source]:
            names[source] += f" ({', '.join(f'{name}={text}' for name, text in settings.items())})"
    return names


def _unnamed(place: int) -> str:
    """Return a name for the filter at an index (from 0) in samples that do not name filters."""
    return f"filter {place + 1}" if place else "none"


def by_part(rows: Iterable[Any]) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """Return the lines of each part with the names of their filters, as `messages` needs them."""
    parts: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for part, filtered, row in _parts(rows):
        parts.setdefault(part, []).append((filtered, row))
    return parts


def messages(parts: Mapping[str, list[tuple[str, dict[str, Any]]]], part: str, open_named: OpenNamed) -> list[Message]:
    """List the prompt of a document, the answers of the model, the filtered answers, and the scores."""
    lines = parts[part]
    first = lines[0][1]
    requests = [_items(one) for one in _items(decoded(first.get("arguments")))]
    answers = _items(decoded(first.get("resps")))
    out: list[Message] = []
    generates = False
    for at, request in enumerate(requests):
        asked = request[1] if len(request) > 1 else None  # a continuation, generation settings, or None
        generates = generates or isinstance(asked, dict)
        is_same = at > 0 and request[:1] == requests[at - 1][:1]
        if not is_same:
            out += _prompt(request[0] if request else "")
        own = _items(answers[at]) if at < len(answers) else []
        for answer in own:
            text = text_of(answer)
            if isinstance(answer, list):
                text = f"log-likelihood {text_of(answer[0] if answer else None)} of {asked!r}"
            elif asked is None:
                text = f"log-likelihood {text} of the whole text"
            if is_same and isinstance(answer, list):
                out[-1].text += f"\n{text}"
            else:
                out.append(Message("assistant", text))
    for filtered, row in lines:
        if generates:
            result = decoded(row.get("filtered_resps"))
            text = text_of(result[0] if isinstance(result, list) and len(result) == 1 else result)
            out.append(Message("system", f"{filtered}: {text}", "filter"))
        for metric, number in _metrics(row).items():
            out.append(Message("system", f"{metric},{filtered} = {text_of(number)}", "score"))
    return out


def _items(value: Any) -> list[Any]:
    """Return the values of an object or a list; an empty list for anything else."""
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _prompt(prompt: Any) -> list[Message]:
    """Return the messages of a prompt, which is text or a chat as JSON."""
    chat = prompt[0] if isinstance(prompt, list) and len(prompt) == 1 else prompt
    if isinstance(chat, str) and chat.lstrip().startswith("[{"):
        try:
            chat = msgspec.json.decode(chat)
        except msgspec.DecodeError:
            chat = prompt
    if isinstance(chat, list) and chat and all(isinstance(one, dict) and "role" in one for one in chat):
        return chat_messages(chat)
    return [Message("user", text_of(prompt))]
