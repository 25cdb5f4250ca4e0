"""The sentences of reports, made from values: findings and headlines."""

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from evalkit._words import Notes, as_number, counted_noun, fill_template, format_interval, join_first, note, sentence
from evalkit.kinds import Finding

MOST_FLAGS, MOST_NAMED = 3, 4  # flags and models named in a sentence
MOST_ANSWERED = 2  # models named on each side of the sentence that answers, which has about 25 words
FEW_TASKS = 10  # below this an interval says little, which a sentence points out

NO_NOTES = Notes()


def finding_text(finding: Finding) -> str:
    """Return the text of a finding, with names as logs have them: make it plain, or escape it, where it is shown."""
    return fill_template(finding.template or FINDINGS[finding.code], finding.values)


def headline_text(values: Mapping[str, Any], *, begins: bool = False) -> str:
    """Return what a headline is about, or why there is none, from its ``code`` and values.

    If it `begins` a sentence, it has a capital, unless it begins with the name of a model.
    """
    text = fill_template(HEADLINES[values["code"]], values)
    return f"{text[:1].upper()}{text[1:]}" if begins and values["code"] != "leads" else text


def listed(names: Iterable[Any]) -> str:
    """Join names: ``a, b and c``."""
    *most, last = map(str, names)
    return f"{', '.join(most)} and {last}" if most else last


def _models(names: Sequence[str], most: int = MOST_NAMED) -> str:
    return listed(sorted(names)) if len(names) <= most else f"{len(names):,} models"


def files_text(files: Mapping[str, int]) -> str:
    """Describe how many files were used, skipped and failed; `files` as from `evalkit.kinds.findings.files_of`."""
    skipped, failed = files["skipped"], files["failed"]
    if not skipped + failed:
        return f"all {files['all']:,} files were used" if files["all"] != 1 else "the one file was used"
    clauses = [f"{failed:,} could not be read"] * bool(failed) + [f"{skipped:,} skipped"] * bool(skipped)
    return f"of {counted_noun(files['all'], 'file')}, {' and '.join(clauses)}"


def _value(row: Mapping[str, Any], is_share: bool = True, unit: str = "") -> str:
    return format_interval(row["estimate"], row["low"], row["high"], percent=is_share, unit=None if is_share else unit)


def _endings(endings: Mapping[str, int], n: int, noun: str) -> str:
    if not (failed := sum(endings.values())):
        return f"None of {counted_noun(n, noun)} failed."
    ways = sorted(endings.items(), key=lambda item: (-item[1], item[0]))
    shown = ", ".join(f"{name} ({count:,})" for name, count in ways if count)
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
    a_flag = f"a{'nother' * bool(everywhere)} flag"
    text = f"No {noun} carries {a_flag}"
    if flags:
        shown = ", ".join(f"{name.replace('_', ' ')} ({count:,})" for name, count in list(flags.items())[:MOST_FLAGS])
        more = f" and {counted_noun(len(flags) - MOST_FLAGS, 'other flag')}" if len(flags) > MOST_FLAGS else ""
        carry = "carries" if flagged == 1 else "carry"
        text = f"{flagged:,} of {counted_noun(n, noun)} {carry} {a_flag}: {shown}{more}"
    fact = [f"every {noun} carries the flag{'s' * (len(everywhere) > 1)} {listed(everywhere)}"] if everywhere else []
    return " ".join(map(sentence, (*fact, f"{text}; {files_text(files)}", *names.notes)))


def _size(runs: float, tasks: float) -> str:
    return f"({counted_noun(int(runs), 'run')} of {counted_noun(int(tasks), 'task')})"


def _ranking(
    headline: Mapping[str, Any],
    *,
    n_models: int,
    what: str,
    is_share: bool,
    unit: str,
    rates: Sequence[Mapping[str, Any]],
) -> str:
    """Describe a headline with its estimate; without one, the highest of the `rates` of the first models."""
    if as_number(headline.get("estimate")) is None:
        said, values = headline_text(headline, begins=True), [_value(row, is_share, unit) for row in rates]
        if headline["code"] == "tie" and len(set(values)) == 1:
            return f"{said}, each with a {what} of {values[0]}."
        if not rates:
            return f"{said}."
        size = _size(rates[0]["n"], rates[0]["n_tasks"])
        return f"{said}; the highest {what} is {values[0]}, of {rates[0]['model_name']} {size}."
    value, model = f"a {what} of {_value(headline, is_share, unit)}", headline.get("model", "")
    size = _size(headline["n"], headline["n_clusters"])
    doubt = headline.get("doubt", "")
    match headline["code"]:
        case "one_model":
            only = "has a name and was measured" if headline.get("unnamed") else "was measured"
            return f"{model} is the only model that {only}, with {value} {size}."
        case "unnamed":
            is_rate = f"The {what} is {_value(headline, is_share, unit)} {size}."
            return f"{is_rate} No run that was measured names its model; --model NAME gives one."
        case "best":
            answer = f"{model} is shown to be the best of {n_models} models{doubt}, with {value}."
        case _ if headline["behind"]:
            ahead, unshown = (_models(headline[side], MOST_ANSWERED) for side in ("behind", "open"))
            answer = f"{model} leads with {value}: ahead of {ahead}{doubt}, but not shown to be ahead of {unshown}."
        case _:
            unshown = _models(headline["open"], MOST_ANSWERED)
            answer = f"No model is shown to be best: {model} is first with {value}, not separable from {unshown}."
    alike = "; models ran different tasks, taken to be drawn alike" * headline.get("unpaired", False)
    few = "; the shared tasks are too few to tell" * headline.get("few", False)
    return f"{answer} The {what} is {headline['basis'] or 'corrected for picking the first'} {size}{alike}{few}."


def undecided_text(count: int) -> str:
    """Say why a model is the best though the table of pairs leaves so many of its pairs open; nothing for none."""
    open_pairs = f"leaves {counted_noun(count, 'pair')} with it open"
    return f" Best is a test of its own; the table of pairs corrects for all of them, and {open_pairs}." * bool(count)


def _rate(headline: Mapping[str, Any]) -> str:
    if headline["code"] != "rate":
        return sentence(headline_text(headline))
    n, tasks = counted_noun(int(headline["n"]), "run"), counted_noun(int(headline["n_clusters"]), "task")
    unmeasured = int(headline["n_not_measured"])
    without = f", {unmeasured} of them not measured and counted as {'a failure' if unmeasured == 1 else 'failures'}"
    caveat = " So few tasks leave it open what the rate is on others." if headline["n_clusters"] < FEW_TASKS else ""
    return sentence(f"{headline['what']} is {_value(headline)} ({n} of {tasks}{without * bool(unmeasured)})") + caveat


DIRECTIONS = {
    "falls": "success falls with every blocked agent",
    "falls overall": "success falls with the number of blocked agents, though not shown for each step",
    "falls, not steadily": "success falls with the number of blocked agents overall, but not steadily",
    "rises": "success rises with every blocked agent",
    "rises overall": "success rises with the number of blocked agents, though not shown for each step",
    "rises, not steadily": "success rises with the number of blocked agents overall, but not steadily",
}


def trend_text(row: Mapping[Hashable, Any]) -> str:
    """Describe a row of `evalkit.mindcraft.analysis.cooking_trend`."""
    model, family = row["model_name"], " after Holm correction over models" if row["p_holm"] > row["p_value"] else ""
    if pd.isna(row["p_value"]):
        return f"{model}: no trend can be tested ({row['warning'] or 'too few runs'})."
    result = f"p = {row['p_holm']:.2g}{family}, {row['n']} runs of {row['n_clusters']} tasks"
    if row["direction"] in DIRECTIONS:
        return f"{model}: {DIRECTIONS[row['direction']]} ({result})."
    return f"{model}: no trend is shown ({result}); that is no proof that there is none."


def reach_text(model: str, tasks: Mapping[float, int], gap: float) -> str:
    """Describe how large a difference between the fewest and the most blocked agents would show."""
    counts = ", ".join(f"{n} with {level:.0f}" for level, n in tasks.items())
    reach = "no difference, however large," if math.isnan(gap) else f"only a difference of about {gap * 100:.0f} points"
    return f"{model}: tasks by blocked agents: {counts}. So few show {reach} with 80 % power."


def _trends(trends: Sequence[Mapping[Hashable, Any]], models: Sequence[str]) -> str:
    rest = f"For {listed(models)} no trend with the number of blocked agents is shown" if models else ""
    return " ".join([*map(trend_text, trends), *[f"{rest}, which is no proof that there is none."] * bool(rest)])


def _steps(n: int, n_histories: int, silent: int, confirmed: Any, reported: Any) -> str:
    histories = counted_noun(n_histories, "history")
    shares = _value(confirmed), _value(reported)
    text = f"{shares[0]} of {counted_noun(n, 'step')} in {histories} succeeded"
    if n_histories > 1:
        text = f"{shares[0]} of a history's steps succeeded, on average over {histories} ({counted_noun(n, 'step')})"
    return f"{text}. {shares[1]} report success, {counted_noun(silent, 'silent failure')} among them."


def pair_text(row: Mapping[Hashable, Any], noun: str = "task", together: Collection[str] = ()) -> str:
    """Describe the comparison of a pair of models, a row of `evalkit.compare.pairs`, with its target.

    `noun` is the word for what both ran; names that are `together` stand for several models.
    """
    if unmeasured := [one for one in row["warning"].notes if one.code == "unmeasured"]:
        return f"Not compared: {unmeasured[0]}."
    apart = next((one for one in row["warning"].notes if one.code == "unpaired"), None)
    if row["n_tasks"] == 0 and not apart:
        return f"Not decided: {row['model_a']} and {row['model_b']} share no {noun}s."
    ahead, behind, sign = ("a", "b", 1) if row["estimate"] >= 0 else ("b", "a", -1)
    names = [row[f"model_{side}"] for side in (ahead, behind)]
    first = f"{names[0]} together are" if names[0] in together else f"{names[0]} is"
    like = f"new {noun}s like these" if row["target"] == "new tasks" else f"these {noun}s, run again"
    is_share = row.get("unit", "%") == "%"
    points: dict[str, Any] = {"percent": is_share, "unit": "points" if is_share else row["unit"]}
    means = [format_interval(row[f"mean_{side}"], None, None, percent=is_share) for side in (ahead, behind)]
    low, high = sorted((sign * row["low"], sign * row["high"]))
    p_value, tested = row["p_adjusted"], row.get("tested", 1)
    chance = "" if math.isnan(p_value) else ", p < 0.0001" if p_value < 1e-4 else f", p = {p_value:.2g}"
    family = f" after {row['correction']} correction for {tested} pairs" if tested > 1 else ""
    shared = f"{' against '.join(means)} on {counted_noun(row['n_tasks'], noun)} shared"
    if apart:  # each on its own
        own = (counted_noun(apart.values[side], noun) for side in (ahead, behind))
        shared = " against ".join(f"{mean} on {tasks}" for mean, tasks in zip(means, own, strict=True))
    gap = f"difference {format_interval(abs(row['estimate']), low, high, **points)}{chance}{family}"
    result = f"{shared}, {gap}{f'; {apart}' if apart else ''}."
    same = ""
    if row["equivalent"]:
        within = format_interval(row["margin"], None, None, **points)
        same = f"{names[0]} and {names[1]} are equivalent on {like}, within ± {within}"
    if row["decided"]:
        return f"{first} better than {names[1]} on {like}: {result}" + f" The difference is small: {same}." * bool(same)
    return f"{same or f'Not decided between {names[0]} and {names[1]} on {like}'}: {result}"


def _nearest_pair(decided: int, pairs: int, row: Mapping[Hashable, Any] | None, undecided: int = 0) -> str:
    """Count the decided pairs, and describe the one that is nearest to a decision."""
    picked = undecided_text(undecided)
    count = f"{decided} of {counted_noun(pairs, 'pair')} decided" * (pairs > 1)
    if not row or math.isnan(row["p_adjusted"]):
        return sentence(count or (pair_text(row) if row else "")) + picked
    is_share = row["unit"] == "%"
    sides = [
        f"{row[f'model_{side}']} ({format_interval(row[f'mean_{side}'], None, None, percent=is_share)})"
        for side in ("ab" if row["estimate"] >= 0 else "ba")
    ]
    tested = f"on {counted_noun(row['n_tasks'], 'task')}, p = {row['p_adjusted']:.2g}"
    verdict = " is ahead of " if row["decided"] else " against "
    return f"{count}{'; ' * bool(count)}{'' if row['decided'] else 'open: '}{verdict.join(sides)} {tested}.{picked}"


def _known(behind: Sequence[str], open: Sequence[str], few: bool, doubt: str = "", **_: Any) -> str:
    """Say which models the first one is ahead of, and which it is not separable from."""
    verdicts = {"ahead of": behind, "not separable from": open}
    known = "; ".join(f"{verdict} {_models(names)}" for verdict, names in verdicts.items() if names)
    return f"{known}{doubt * bool(behind)}" + "; the shared tasks are too few to tell" * few


HEADLINES: dict[str, str | Callable[..., str]] = {
    "rate": "{what}",
    "no_rate": "{what}: {warning}",
    "no_runs": "{what}: no runs of this kind",
    "nothing": "no best model: no run was measured",
    "unnamed": "{what}; no run with one names its model",
    "one_model": "{what} of {model}",
    "apart": lambda models, n_sets, conditions=False, **_: (
        f"no best model: {_models(models)} {f'are in {n_sets} sets that ' * (n_sets < len(models))}share no tasks"
        + " under equal conditions" * conditions
    ),
    "cycle": lambda models, **_: f"no best model: of {_models(models)} each is better than another one",
    "tie": lambda models, **_: f"no model leads: {_models(models)} tie for first",
    "leads": lambda model, **values: f"{model} {'leads' if values['behind'] else 'is first'}; {_known(**values)}",
    "best": lambda model, what, basis, unpaired=False, doubt="", **_: (
        f"best: {model} ({', '.join(filter(None, [what, basis, str(note('unpaired')) * unpaired]))}){doubt}"
    ),
}


def budget_name(turns: Any) -> str:
    """Return the name of a budget of turns, which may be missing."""
    return "budget not told" if pd.isna(turns) else counted_noun(int(turns), "turn")


def budgets_text(budgets: Sequence[Mapping[Hashable, Any]]) -> str:
    """List budgets and their episodes, as `evalkit.crafter.analysis.budgets` counts them."""
    return ", ".join(f"{budget_name(row['max_turns'])} ({counted_noun(row['episodes'], 'episode')})" for row in budgets)


def _presence(models: Sequence[Mapping[Hashable, Any]]) -> str:
    """Say which models lack runs, or have more than planned, as far as the others' runs and definitions tell."""
    texts = []
    for row in models:
        clauses = [f"{row[what]:,} {what}" for what in ("missing", "surplus") if row[what] > 0]
        texts.append(f"{row['model_name']} {' and '.join(clauses)}")
    return f"Runs missing or surplus: {join_first(texts, MOST_NAMED, '; and of {} more models', '; ')}."


FINDINGS: dict[str, str | Callable[..., str]] = {
    "endings": _endings,
    "data": _data,
    "files": lambda files, names=NO_NOTES: " ".join(map(sentence, (files_text(files), *names.notes))),
    "copies": lambda pairs: sentence(note("copied", pairs=pairs)),
    "presence": _presence,
    "ranking": _ranking,
    "rate": _rate,
    "pair": pair_text,
    "no_other": "There is no other model in these data to compare {model} with.",
    "trends": _trends,
    "reach": reach_text,
    "points": lambda n, above, below, zero, earned, lost: (
        f"{counted_noun(n, 'episode')}: {above} above zero, {below} below, {zero} at zero; achievements earned "
        f"{earned:.2f} points, invalid actions cost {lost:.2f}."
    ),
    "steps": _steps,
    "no_steps": "No step can be judged, so there is no success rate.",
    "failures": lambda n, ways, first: (
        f"{counted_noun(n, 'step')} failed or failed silently, in {counted_noun(ways, 'way')}: "
        + "; ".join(f"{kind} ({count})" for kind, count in first)
        + "."
    ),
    "cut": "Results of {cut:,} of {n:,} steps that report success were cut when stored.",
    "alone": "There is one model only, so nothing is compared.",
    "nearest_pair": _nearest_pair,
    **dict.fromkeys(("caveat", "conditions", "variants"), lambda notes: " ".join(map(sentence, notes.notes))),
}
