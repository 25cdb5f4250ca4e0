"""Write the sentences of findings and headlines that all kinds of logs share; the rest is in each kind's ``words``."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from evalkit._notes import NO_NOTES, Note, Notes, note
from evalkit._text import (
    Part,
    Parts,
    as_number,
    counted_noun,
    fill_template,
    format_amount,
    format_interval,
    listed,
    sentence,
)
from evalkit.kinds import Finding
from evalkit.kinds.runs import UNKNOWN
from evalkit.kinds.success_rates import AMOUNTS, PER_RUN
from evalkit.stats.intervals import LEVEL

MOST_FLAGS = 2  # maximum number of flags listed in a sentence
MOST_WAYS = 3  # maximum number of ways in which runs ended, listed in a sentence
MOST_NAMED = 4  # maximum number of models listed in a sentence
MOST_ANSWERED = 2  # maximum number of models listed on each side of the answer, so that it has about 25 words

# findings that follow the answer in an abstract, in this order; "reasons" are the main reasons for failure
ABSTRACT = ("conditions", "variants", "pair", "nearest_pair", "own_tasks", "plan", "reasons", "endings")

Row = Mapping[Any, Any]  # a row of a table, or the values of a headline


def finding_text(finding: Finding) -> str:
    """Return the text of a finding. It contains names from logs: pass it through `plain` or escape it to show it."""
    return str(finding_parts(finding))


def finding_parts(finding: Finding) -> Parts:
    """Return the text of a finding in parts, some of which link to runs."""
    worded = fill_template(finding.template or FINDINGS[finding.code], finding.values)
    return worded if isinstance(worded, Parts) else Parts((Part(worded),))


def abstract_text(answer: Finding, others: Iterable[Finding], first: Row) -> str:
    """Write the abstract of a report: its answer, the findings in `ABSTRACT`, and what a run takes on average.

    `first` is the first row of the table of the answer; its columns ``… per run`` are means. The abstract states what a
    run takes only if that row's model has a name and an estimate.
    """
    texts = [finding_text(answer)]
    by_code: dict[str, list[Finding]] = {}
    for finding in others:
        by_code.setdefault(finding.code, []).append(finding)
    for code in ABSTRACT:
        for finding in by_code.get(code, ()):
            row = finding.values.get("row") if code == "nearest_pair" else None
            texts.append(short_pair(row) if row else finding_text(finding))
    amounts = []
    for title, unit in AMOUNTS.values():
        mean = as_number(first.get(f"{title}{PER_RUN}"))
        if mean is not None:
            amount = format_amount(mean)
            amounts.append(f"{amount} {unit.removesuffix('s') if amount == '1' else unit}")
    if amounts and first["model_name"] != UNKNOWN and as_number(first.get("estimate")) is not None:
        texts.append(f"A run of {first['model_name']} takes {listed(amounts)} on average.")
    return " ".join(texts)


def headline_text(values: Row, *, begins: bool = False) -> str:
    """Return the text of a headline. If it `begins` a sentence, capitalise it, unless it starts with a model's name."""
    text = fill_template(HEADLINES[values["code"]], values)
    return f"{text[:1].upper()}{text[1:]}" if begins and values["code"] != "leads" else text


def model_names(names: Sequence[str], most: int = MOST_NAMED, noun: str = "model") -> str:
    """List models sorted by name, or count them if there are more than `most`."""
    return listed(sorted(names)) if len(names) <= most else counted_noun(len(names), noun)


def estimate_text(row: Row, is_share: bool = True, unit: str = "") -> str:
    """Format the estimate of a row with its interval."""
    return format_interval(row["estimate"], row["low"], row["high"], percent=is_share, unit=None if is_share else unit)


def files_text(files: Mapping[str, int]) -> str:
    """Describe how many files were used, skipped and failed, from the counts of `evalkit.kinds.findings.files_of`."""
    counts = {"unreadable": files["failed"], "skipped": files["skipped"]}
    unused = [f"{count:,} {status}" for status, count in counts.items() if count]
    if unused:
        return f"of {counted_noun(files['all'], 'file')}, {listed(unused)}"
    return "the only file was used" if files["all"] == 1 else f"all {files['all']:,} files were used"


def _files(files: Mapping[str, int], names: Notes = NO_NOTES) -> str:
    return _sentences(files_text(files), *names.notes)


def _sentences(*texts: str | Note) -> str:
    return " ".join(map(sentence, texts))


def _endings(endings: Mapping[str, int], labels: Mapping[str, str], n: int, noun: str) -> str:
    """State how many runs did not succeed, and how they ended: counts by code, with the label of each code."""
    failed = sum(endings.values())
    if not failed:
        return f"The one {noun} did not fail." if n == 1 else f"None of {counted_noun(n, noun)} failed."
    if set(endings) == {"failure"}:
        return f"{failed:,} of {counted_noun(n, noun)} did not succeed."
    ways = sorted((-count, labels[code]) for code, count in endings.items() if count)
    shown = listed((f"{label} ({-count:,})" for count, label in ways), MOST_WAYS)
    return f"{failed:,} of {counted_noun(n, noun)} did not succeed: {shown}."


def _data(
    flags: Mapping[str, int],
    flagged: int,
    n: int,
    noun: str,
    files: Mapping[str, int],
    everywhere: Sequence[str] = (),
    names: Notes = NO_NOTES,
) -> str:
    texts: list[str | Note] = []
    if everywhere:
        texts.append(f"every {noun} has the {'flag' if len(everywhere) == 1 else 'flags'} {listed(everywhere)}")
    if flags:
        shown = listed((f"{name.replace('_', ' ')} ({count:,})" for name, count in flags.items()), MOST_FLAGS)
        how = "with other flags" if everywhere else "flagged"
        text = f"{flagged:,} of {counted_noun(n, noun)} {how}: {shown}"
    else:
        text = f"no {noun} has another flag" if everywhere else f"no {noun} is flagged"
    return _sentences(*texts, f"{text}; {files_text(files)}", *names.notes)


def _ranking(*, compared_by: Sequence[str] = (), **values: Any) -> str:
    """Describe a headline with its estimate, and name the compared columns if models are not what is compared."""
    noun = "model" if not compared_by or "model_name" in compared_by else "group"
    if len(compared_by) == 1:
        noun = compared_by[0].replace("_", " ")
    answer = _ranked(**values, noun=noun)
    return f"{answer} {sentence(note('compared_by', columns=compared_by))}" if compared_by else answer


def _ranked(headline: Row, n_models: int, what: str, is_share: bool, unit: str, rates: Sequence[Row], noun: str) -> str:
    """Describe a headline with its estimate. There is no estimate over several conditions."""
    code = headline["code"]
    if code not in ("one_model", "unnamed", "best", "leads"):
        return _without_leader(headline, what, rates, partial(estimate_text, is_share=is_share, unit=unit))
    model = headline.get("model", "")
    doubt = IF_NO_VARIANTS if headline.get("variants") else ""
    rate = ""
    with_rate = " under equal conditions"
    if "estimate" in headline:
        rate = f"{estimate_text(headline, is_share, unit)} {_size(headline['n'], headline['n_tasks'])}"
        with_rate = f" with a {what} of {rate}"
    if code == "one_model":
        only = "has a name and was measured" if headline.get("unnamed") else "was measured"
        return f"{model} is the only {noun} that {only}{f',{with_rate}' if rate else ''}."
    if code == "unnamed":
        unnamed = "No run that was measured names its model."
        return f"The {what} is {rate}. {unnamed}" if rate else unnamed
    undecided = model_names(headline["open"], MOST_ANSWERED, noun) if code == "leads" else ""
    if code == "best":
        within = " under equal conditions" if rate and headline.get("conditions_differ") else ""
        models = counted_noun(n_models, f"named {noun}" if headline.get("unnamed_runs") else noun)
        best = f"{model} is shown to be the best of {models} on new tasks like these"
        answer = f"{best}{within}{doubt},{with_rate}"
    elif headline["behind"]:
        behind = model_names(headline["behind"], MOST_ANSWERED, noun)
        answer = f"{model} leads{with_rate}: ahead of {behind}{doubt}, but not decided against {undecided}"
    else:
        answer = f"No {noun} is shown to be best: {model} is first{with_rate}, not decided against {undecided}"
    if headline.get("unpaired"):
        answer += "; models ran different tasks, assumed to be random samples of the same tasks"
    if headline.get("few"):
        answer += FEW_SHARED
    if "higher" in headline and rate:  # else the table has no single rate of a model
        answer += f"; {headline['basis']} it ranks above {headline['higher']}, whose raw {what} is higher"
    absent = headline.get("absent")
    return f"{answer}. {sentence(note('absent', **absent))}" if absent else f"{answer}."


def _without_leader(headline: Row, what: str, rates: Sequence[Row], written: Callable[[Row], str]) -> str:
    """Describe a headline without a first model, with the highest of the `rates` of models that could be first."""
    text = headline_text(headline, begins=True)
    if not rates:
        return f"{text}."
    first = rates[0]
    if headline["code"] == "tie" and len(set(map(written, rates))) == 1:
        return f"{text}, each with a {what} of {written(first)}."
    highest = f"{written(first)}, of {first['model_name']} {_size(first['n'], first['n_tasks'])}"
    equal = [row["model_name"] for row in rates[1:] if row["estimate"] == first["estimate"]]
    if equal:
        has = "has" if len(equal) == 1 else "have"
        highest += f"; {model_names(equal, MOST_ANSWERED)} {has} the same estimate"
    return f"{text}; the highest {what} is {highest}."


FEW_SHARED = "; too few shared tasks to decide"
IF_NO_VARIANTS = ", unless its tasks are variants of a few"


def _size(runs: float, tasks: float) -> str:
    return f"({counted_noun(int(runs), 'run')} of {counted_noun(int(tasks), 'task')})"


def undecided_text(count: int) -> str:
    """Explain why a model is the best although `count` of its pairs are not decided; "" if `count` is 0."""
    if not count:
        return ""
    pairs = f"{count} of its pairs {'is' if count == 1 else 'are'} not decided there"
    claim = "The claim about the best model tests only this model against the others."
    return f"{claim} The table of pairs corrects for all pairs, so {pairs}."


def pair_text(row: Row) -> str:
    """Describe the comparison of two models, with its target. `row` is a row of `evalkit.compare.pairs`."""
    notes = {one.code: one for one in row["warning"].notes}
    if "unmeasured" in notes:
        return f"Not compared: {notes['unmeasured']}."
    apart = notes.get("unpaired")
    if row["n_tasks"] == 0 and not apart:
        return f"Not decided: {row['model_a']} and {row['model_b']} share no tasks."
    sides = "ab" if row["estimate"] >= 0 else "ba"  # the leading model first
    first, second = row[f"model_{sides[0]}"], row[f"model_{sides[1]}"]
    like = "new tasks like these" if row["target"] == "new tasks" else "these tasks, run again"
    difference, unit = _difference(row)
    means = []
    for side in sides:
        mean = format_interval(row[f"mean_{side}"], None, None, percent=unit["percent"])
        if apart:  # each model on its own tasks
            mean += f" on {counted_noun(apart.values[side], 'task')}"
        means.append(mean)
    result = " against ".join(means)
    if partly := notes.get("partly_shared"):
        others = f"{partly.values[sides[0]]} against {partly.values[sides[1]]} others"
        result = f"an estimated {result}, from {counted_noun(row['n_tasks'], 'shared task')}"
        result += f" and {others}, assumed to be random samples of the same tasks"
    elif not apart:
        result += f" on {counted_noun(row['n_tasks'], 'shared task')}"
    result += f", difference {difference}{_chance(row)}"
    if row.get("tested", 1) > 1:
        result += f" after {row['correction']} correction for {row['tested']} pairs"
    if why := why_undecided(row):
        result += f"; {why}"
    if apart:
        result += f"; {apart}"
    within = format_interval(row["margin"], None, None, **unit)
    same = f"{first} and {second} are equivalent on {like}, within ± {within}"
    if row["decided"]:
        better = f"{first} is better than {second} on {like}: {result}."
        return f"{better} The difference is small: {same}." if row["equivalent"] else better
    return f"{same if row['equivalent'] else f'Not decided between {first} and {second} on {like}'}: {result}."


def _difference(row: Row) -> tuple[str, dict[str, Any]]:
    """Format a pair's difference, the leading model minus the other; also return the options that format its unit."""
    is_share = row.get("unit", "%") == "%"
    unit = {"percent": is_share, "unit": "points" if is_share else row["unit"]}
    sign = 1 if row["estimate"] >= 0 else -1
    low, high = sorted((sign * row["low"], sign * row["high"]))
    return format_interval(abs(row["estimate"]), low, high, **unit), unit


def why_undecided(row: Row) -> str:
    """Explain why a pair, or a model and its baseline, is not decided although its uncorrected p is at most 0.05."""
    if row["p_adjusted"] <= row["claim_at"] or math.isnan(row["p_value"]):
        return ""
    if row["p_adjusted"] <= LEVEL:
        return str(row["warning"].only("few_pairs", "skewed_pair"))
    if row["p_value"] > row["claim_at"]:
        return ""
    text = f"p = {row['p_value']:.2g} before the correction"
    return f"{text}; so few tasks may have missed a rare loss" if "unseen" in row["warning"] else text


def _chance(row: Row) -> str:
    p_value = row["p_adjusted"]
    if math.isnan(p_value):
        return ""
    return ", p < 0.0001" if p_value < 1e-4 else f", p = {p_value:.2g}"


def short_pair(row: Row, before: str = "", *, with_difference: bool = True) -> str:
    """Describe the comparison of a pair in one line, after the text `before`; `pair_text` describes it in full."""
    if row["n_tasks"] == 0 or math.isnan(row["p_adjusted"]):
        return pair_text(row)
    sides = []
    for side in "ab" if row["estimate"] >= 0 else "ba":
        mean = format_interval(row[f"mean_{side}"], None, None, percent=row["unit"] == "%")
        sides.append(f"{row[f'model_{side}']} ({mean})")
    if row["decided"]:
        result = " ahead of ".join(sides)
    else:
        verdict = "equivalent" if row["equivalent"] else "not decided"
        result = f"{verdict if before else verdict.capitalize()}: {' against '.join(sides)}"
    tasks = counted_noun(row["n_tasks"], "task")
    if row["n_unshared"]:
        tasks += f" shared and {row['n_unshared']:,} others"
    text = f"{before}{result} on {tasks}"
    if with_difference:
        text += f", difference {_difference(row)[0]}"
    why = why_undecided(row)
    return f"{text}{_chance(row)} ({why})." if why else f"{text}{_chance(row)}."


def _nearest_pair(decided: int, pairs: int, row: Row | None, first: int = 0) -> str:
    """Count the decided pairs, and describe the pair nearest to a decision; if `first` is set, only among the first."""
    of_first = f" of the first {first} models" if first else ""
    count = f"{decided} of {counted_noun(pairs, 'pair')}{of_first} decided"
    if not row or (pairs > 1 and math.isnan(row["p_adjusted"])):
        return f"{count}."
    return short_pair(row, f"{count}; " if pairs > 1 else "", with_difference=False)


def _plan(
    difference: float, models: Sequence[str], tasks: Mapping[int, float], n_tasks: int, is_share: bool, unit: str
) -> str:
    """State how many tasks, run once or several times, detect a true difference."""
    what = format_interval(difference, None, None, percent=is_share, unit="points" if is_share else unit)
    shown = round(100 * difference, 1) if is_share else round(difference, 2)
    if models and (shown == 0 or not any(map(math.isfinite, tasks.values()))):
        hint = "--detect POINTS (parameter detect) plans for a difference that matters"
        return f"The observed difference between {listed(models)} is too small to plan for; {hint}."
    shares = "They share" if models else "A pair now shares"
    if models:
        what = f"the observed {what} between {models[0]} and {models[1]}"
    ways = []
    for repeats, count in tasks.items():
        if not math.isnan(count):
            number = counted_noun(int(count), "task") if math.isfinite(count) else "more than ten million tasks"
            ways.append(f"{number} run {'once' if repeats == 1 else f'{repeats} times'}")
    return f"To detect {what}, plan {' or '.join(ways)} (80 % power). {shares} {counted_noun(n_tasks, 'task')}."


def _nothing(ended: Mapping[str, int], n: int, **_: Any) -> str:
    """State how runs ended if none was measured."""
    if not n:
        return "no best model: no run was measured"
    unstated = ended.get("", 0)
    if unstated == n:
        logs = "the log of 1 run states no outcome" if n == 1 else f"no log of {n:,} runs states an outcome"
        return f"no best model: {logs}"
    ways = sorted(((way, count) for way, count in ended.items() if way), key=lambda item: -item[1])
    counts = [f"{count:,} with {way}" for way, count in ways]
    counts[0] = f"{ways[0][1]:,} of {counted_noun(n, 'run')} ended with {ways[0][0]}"
    if unstated:
        counts.append(f"{unstated:,} without an outcome in their logs")
    return f"{listed(counts, MOST_WAYS, '{} more ways')}: no run was measured"


def _apart(models: Sequence[str], n_sets: int, conditions: bool = False, **_: Any) -> str:
    sets = f"are in {n_sets} sets that " if n_sets < len(models) else ""
    alike = " under equal conditions" if conditions else ""
    return f"no best model: {model_names(models)} {sets}share no tasks{alike}"


def _no_best(text: str, /, models: Sequence[str], **_: Any) -> str:
    return text.format(model_names(models))


def _leads(model: str, behind: Sequence[str], open: Sequence[str], few: bool, variants: bool = False, **_: Any) -> str:
    """State which models the first model is ahead of, and against which it is not decided."""
    clauses = [f"{model} {'leads' if behind else 'is first'}"]
    if behind:
        clauses.append(f"ahead of {model_names(behind)}")
    if open:
        clauses.append(f"not decided against {model_names(open)}")
    text = "; ".join(clauses)
    if behind and variants:
        text += IF_NO_VARIANTS
    return f"{text}{FEW_SHARED}" if few else text


def _best(model: str, what: str, basis: str = "", **doubts: Any) -> str:
    about = [what, basis, str(note("unpaired")) if doubts.get("unpaired") else ""]
    best = "best of the named models" if doubts.get("unnamed_runs") else "best"
    text = f"{best}: {model} ({', '.join(filter(None, about))})"
    return f"{text}{IF_NO_VARIANTS}" if doubts.get("variants") else text


def _audit(
    headline: Row, changes: int, checks: int, verdicts: Mapping[str, int], first: str, others: Sequence[str]
) -> str:
    """State how many checks change the ranking, which model would be first, and how many found an error or a doubt."""
    made = counted_noun(checks - verdicts["not computed"], "check")
    text = f"{changes or 'None'} of {made} change{'s' if changes < 2 else ''} the ranking"
    if headline["code"] in ("nothing", "one_model", "unnamed"):
        measured = f"only {first} was measured" if first else "no named model was measured"
        text = f"{measured}, so there is no ranking to check"
    elif others and first:
        named = " or ".join(others) if len(others) <= MOST_ANSWERED else f"one of {len(others)} other models"
        text += f": {first} is first, otherwise {named}"
    elif changes and first:
        text += f", but not the first place, which {first} has"
    counts = []
    if verdicts["wrong"]:
        counts.append(f"{verdicts['wrong']} found an error")
    if verdicts["look"]:
        counts.append(f"{verdicts['look']} found something to look at")
    if verdicts["not computed"]:
        counts.append(f"{verdicts['not computed']} more could not be computed")
    how_ended = [headline_text(headline)] if headline["code"] == "nothing" else []
    return _sentences(*how_ended, text, listed(counts) or "no check found anything")


def _check(
    check: str, count: int, n: int, noun: str, verdict: str, first: str, moved: int | None, notes: Notes, leads: str
) -> str:
    """State what a check counted, and how the ranking would change."""
    text = f"{check}{' (an error)' if verdict == 'wrong' else ''}: {count:,} of {counted_noun(n, noun)}"
    if notes:
        text += f" ({notes})"
    if moved:
        is_overtaken = first and leads and first != leads
        places = f"{counted_noun(moved, 'model')} change{'s' if moved == 1 else ''} places"
        text += f"; otherwise {first} is first, not {leads}" if is_overtaken else f"; otherwise {places}"
    return sentence(text)


HEADLINES: dict[str, str | Callable[..., str]] = {
    "rate": "{what}",
    "no_rate": "{what}: {warning}",
    "no_runs": "{what}: no runs of this kind",
    "nothing": _nothing,
    "unnamed": "{what}; no run with one names its model",
    "one_model": "{what} of {model}",
    "apart": _apart,
    "cycle": partial(_no_best, "no best model: {} form a cycle in which each is better than the next"),
    "tie": partial(_no_best, "no model leads: {} share the first rank"),
    "leads": _leads,
    "unlike": partial(_no_best, "no best model: under equal conditions none of {} is shown to be better"),
    "best": _best,
    "doubtful": "no model is shown to be best: the runs are not comparable as they are",
    "lower": "no model is shown to be best: lower scores may be better",
}


FINDINGS: dict[str, str | Callable[..., str]] = {
    "endings": _endings,
    "data": _data,
    "files": _files,
    "absent": lambda **values: sentence(note("absent", **values)),
    "ranking": _ranking,
    "pair": short_pair,
    "alone": "There is only one model, so nothing is compared.",
    "nearest_pair": _nearest_pair,
    "plan": _plan,
    "undecided": undecided_text,
    "audit": _audit,
    "check": _check,
    **dict.fromkeys(("caveat", "conditions", "variants"), lambda notes: _sentences(*notes.notes)),
}
