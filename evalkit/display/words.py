"""The sentences of reports, made from values: findings and headlines."""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from evalkit._words import Notes, counted_noun, fill_template, format_interval, join_first, note, sentence
from evalkit.io.text import shorten
from evalkit.kinds import Finding
from evalkit.stats.intervals import LEVEL

MOST_FLAGS, MOST_WAYS, MOST_NAMED = 2, 3, 4  # flags, ways to end and models named in a sentence
MOST_NAME = 20  # characters of a model's name in a finding that is to fit a line
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
    clauses = [f"{failed:,} unreadable"] * bool(failed) + [f"{skipped:,} skipped"] * bool(skipped)
    return f"of {counted_noun(files['all'], 'file')}, {' and '.join(clauses)}"


def _short(name: object) -> str:
    """Cut the name of a model in its middle, so that a finding fits a line; tables have it whole."""
    return shorten(str(name), MOST_NAME)


def _value(row: Mapping[str, Any], is_share: bool = True, unit: str = "") -> str:
    return format_interval(row["estimate"], row["low"], row["high"], percent=is_share, unit=None if is_share else unit)


def _endings(endings: Mapping[str, int], n: int, noun: str) -> str:
    if not (failed := sum(endings.values())):
        return f"None of {counted_noun(n, noun)} failed."
    ways = sorted(endings.items(), key=lambda item: (-item[1], item[0]))
    shown = join_first([f"{name} ({count:,})" for name, count in ways if count], MOST_WAYS, " and {} more")
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
    text = f"No {noun} carries a{'nother' * bool(everywhere)} flag"
    if flags:
        named = [f"{name.replace('_', ' ')} ({count:,})" for name, count in flags.items()]
        shown = join_first(named, MOST_FLAGS, " and {} more")
        text = f"{flagged:,} of {counted_noun(n, noun)} flagged{' otherwise' * bool(everywhere)}: {shown}"
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
    """Describe a headline with its estimate; where models tie or share no tasks, the highest of their `rates`.

    No estimate spans several conditions: then a model is only said to be ahead of others under equal ones.
    """
    if headline["code"] not in ("one_model", "unnamed", "best", "leads"):
        said, values = headline_text(headline, begins=True), [_value(row, is_share, unit) for row in rates]
        if headline["code"] == "tie" and len(set(values)) == 1:
            return f"{said}, each with a {what} of {values[0]}."
        if not rates:
            return f"{said}."
        size = _size(rates[0]["n"], rates[0]["n_tasks"])
        return f"{said}; the highest {what} is {values[0]}, of {rates[0]['model_name']} {size}."
    model, doubt = headline.get("model", ""), headline.get("doubt", "")
    rate, value = "", " under equal conditions"
    if "estimate" in headline:
        rate = f"{_value(headline, is_share, unit)} {_size(headline['n'], headline['n_tasks'])}"
        value = f" with a {what} of {rate}"
    match headline["code"]:
        case "one_model":
            only = "has a name and was measured" if headline.get("unnamed") else "was measured"
            rated = f",{value}" if rate else ""
            return f"{model} is the only model that {only}{rated}."
        case "unnamed":
            said = f"The {what} is {rate}. " if rate else ""
            return f"{said}No run that was measured names its model."
        case "best":
            within = " under equal conditions" if rate and headline.get("conditions_differ") else ""
            best = f"{model} is shown to be the best of {n_models} models on new tasks like these"
            answer = f"{best}{within}{doubt},{value}"
        case _ if headline["behind"]:
            ahead, unshown = (_models(headline[side], MOST_ANSWERED) for side in ("behind", "open"))
            answer = f"{model} leads{value}: ahead of {ahead}{doubt}, but not separable from {unshown}"
        case _:
            unshown = _models(headline["open"], MOST_ANSWERED)
            answer = f"No model is shown to be best: {model} is first{value}, not separable from {unshown}"
    alike = ""
    if headline.get("unpaired"):
        alike = "; models ran different tasks, taken to be drawn alike"
    elif "partly" in headline:
        shared, others = (" to ".join(map(str, counts)) for counts in headline["partly"])
        alike = (
            f"; pairs with it share {shared} tasks, and {others} that only one model ran count, taken to be drawn alike"
        )
    few = "; the shared tasks are too few to tell" * headline.get("few", False)
    adjusted = ""
    if "higher" in headline:
        adjusted = f"; {headline['basis']} it is before {headline['higher']}, whose raw {what} is higher"
    absent = ""
    if lacking := headline.get("absent"):
        absent = f" {sentence(note('absent', **lacking))}"
    return f"{answer}{adjusted}{alike}{few}.{absent}"


def undecided_text(count: int) -> str:
    """Say why a model is the best though the table of pairs leaves so many of its pairs open; nothing for none."""
    open_pairs = f"leaves {counted_noun(count, 'pair')} with it open"
    return f"Best is a test of its own; the table of pairs corrects for all of them, and {open_pairs}." * bool(count)


def _rate(headline: Mapping[str, Any]) -> str:
    if headline["code"] != "rate":
        return sentence(headline_text(headline))
    n, tasks = counted_noun(int(headline["n"]), "run"), counted_noun(int(headline["n_tasks"]), "task")
    unmeasured = int(headline["n_not_measured"])
    without = f", {unmeasured} of them not measured and counted as {'a failure' if unmeasured == 1 else 'failures'}"
    caveat = " So few tasks leave it open what the rate is on others." if headline["n_tasks"] < FEW_TASKS else ""
    return sentence(f"{headline['what']} is {_value(headline)} ({n} of {tasks}{without * bool(unmeasured)})") + caveat


DIRECTIONS = {
    "falls": "success falls with every blocked agent",
    "falls overall": "success falls overall, if not step by step",
    "falls, not steadily": "success falls overall, but not steadily",
    "rises": "success rises with every blocked agent",
    "rises overall": "success rises overall, if not step by step",
    "rises, not steadily": "success rises overall, but not steadily",
}


def trend_text(row: Mapping[Hashable, Any]) -> str:
    """Describe a row of `evalkit.mindcraft.analysis.cooking_trend`."""
    model, family = _short(row["model_name"]), " by Holm" if row["p_holm"] > row["p_value"] else ""
    if pd.isna(row["p_value"]):
        return f"{model}: no trend can be tested ({row['warning'] or 'too few runs'})."
    runs, tasks = counted_noun(row["n"], "run"), counted_noun(row["n_tasks"], "task")
    result = f"p = {row['p_holm']:.2g}{family}, {runs} of {tasks}"
    if row["direction"] in DIRECTIONS:
        return f"{model}: {DIRECTIONS[row['direction']]} ({result})."
    return f"{model}: no trend is shown ({result}); that is no proof that there is none."


def _drop(headline: Mapping[str, Any]) -> str:
    """Describe how much success drops from no blocked agents to any."""
    if headline["code"] != "drop":
        return sentence(headline_text(headline))
    sides = []
    for side in ("none", "any"):
        rate = format_interval(headline[f"{side}_estimate"], None, None)
        sides.append(f"{rate} on {counted_noun(headline[f'{side}_tasks'], 'task')}")
    said = f"from {sides[0]} without blocked agents to {sides[1]} with any"
    size, low, high = headline["estimate"], headline["low"], headline["high"]
    if low > 0:
        return f"Cooking success drops by {_points(size, low, high)}, {said}."
    if high < 0:
        return f"Cooking success rises by {_points(-size, -high, -low)}, {said}."
    return f"No drop of cooking success with blocked agents is shown: {_points(size, low, high)}, {said}."


def _points(estimate: float, low: float, high: float) -> str:
    return format_interval(estimate, low, high, unit="points")


def reach_text(model: str, tasks: Mapping[float, int], gap: float) -> str:
    """Describe how large a difference between the fewest and the most blocked agents would show."""
    levels = listed(f"{level:.0f}" for level in tasks)
    reach = "no gap, however large" if math.isnan(gap) else f"only a gap of about {gap * 100:.0f} points"
    return f"{_short(model)}: {listed(tasks.values())} tasks with {levels} blocked agents show {reach} (80 % power)."


def _steps(n: int, n_histories: int, silent: int, confirmed: Any, reported: Any) -> str:
    histories = counted_noun(n_histories, "history")
    shares = _value(confirmed), _value(reported)
    text = f"{shares[0]} of {counted_noun(n, 'step')} in {histories} succeeded"
    if n_histories > 1:
        text = f"{shares[0]} of a history's steps succeeded, on average over {histories} ({counted_noun(n, 'step')})"
    return f"{text}. {shares[1]} report success, {counted_noun(silent, 'silent failure')} among them."


def pair_text(row: Mapping[Hashable, Any]) -> str:
    """Describe the comparison of a pair of models, a row of `evalkit.compare.pairs`, with its target."""
    if unmeasured := [one for one in row["warning"].notes if one.code == "unmeasured"]:
        return f"Not compared: {unmeasured[0]}."
    apart = next((one for one in row["warning"].notes if one.code == "unpaired"), None)
    if row["n_tasks"] == 0 and not apart:
        return f"Not decided: {row['model_a']} and {row['model_b']} share no tasks."
    ahead, behind, sign = ("a", "b", 1) if row["estimate"] >= 0 else ("b", "a", -1)
    names = [row[f"model_{side}"] for side in (ahead, behind)]
    like = "new tasks like these" if row["target"] == "new tasks" else "these tasks, run again"
    is_share = row.get("unit", "%") == "%"
    points: dict[str, Any] = {"percent": is_share, "unit": "points" if is_share else row["unit"]}
    means = [format_interval(row[f"mean_{side}"], None, None, percent=is_share) for side in (ahead, behind)]
    low, high = sorted((sign * row["low"], sign * row["high"]))
    tested = row.get("tested", 1)
    family = f" after {row['correction']} correction for {tested} pairs" if tested > 1 else ""
    shared = f"{' against '.join(means)} on {counted_noun(row['n_tasks'], 'task')} shared"
    if apart:  # each on its own
        own = (counted_noun(apart.values[side], "task") for side in (ahead, behind))
        shared = " against ".join(f"{mean} on {tasks}" for mean, tasks in zip(means, own, strict=True))
    partly = next((one for one in row["warning"].notes if one.code == "partly_shared"), None)
    if partly:  # of the model ahead first
        shared += f" and {partly.values[ahead]} against {partly.values[behind]} others, taken to be drawn alike"
    gap = f"difference {format_interval(abs(row['estimate']), low, high, **points)}{_chance(row)}{family}"
    if why := why_undecided(row):
        gap += f"; {why}"
    result = f"{shared}, {gap}{f'; {apart}' if apart else ''}."
    within = format_interval(row["margin"], None, None, **points)
    same = f"{names[0]} and {names[1]} are equivalent on {like}, within ± {within}"
    if row["decided"]:
        text = f"{names[0]} is better than {names[1]} on {like}: {result}"
        return f"{text} The difference is small: {same}." if row["equivalent"] else text
    return f"{same if row['equivalent'] else f'Not decided between {names[0]} and {names[1]} on {like}'}: {result}"


def why_undecided(row: Mapping[Hashable, Any]) -> str:
    """Say why a pair, or a model and a baseline, is not decided though its p value, by itself, is at most 0.05."""
    if row["p_adjusted"] <= row["claim_at"] or math.isnan(row["p_value"]):
        return ""
    limits = row["warning"].only("few_pairs", "skewed_pair")
    if row["p_adjusted"] <= LEVEL:
        return str(limits)
    return f"p = {row['p_value']:.2g} before the correction" if row["p_value"] <= row["claim_at"] else ""


def _chance(row: Mapping[Hashable, Any]) -> str:
    p_value = row["p_adjusted"]
    return "" if math.isnan(p_value) else ", p < 0.0001" if p_value < 1e-4 else f", p = {p_value:.2g}"


def _short_pair(row: Mapping[Hashable, Any], before: str = "", *, with_difference: bool = True) -> str:
    """Describe the comparison of a pair in a line, behind what stands `before`; `pair_text` does it in full."""
    if row["n_tasks"] == 0 or math.isnan(row["p_adjusted"]):
        return pair_text(row)
    is_share = row["unit"] == "%"
    sides = [
        f"{_short(row[f'model_{side}'])} ({format_interval(row[f'mean_{side}'], None, None, percent=is_share)})"
        for side in ("ab" if row["estimate"] >= 0 else "ba")
    ]
    verdict = "equivalent" if row["equivalent"] else "open"
    open_pair = f"{verdict if before else verdict.capitalize()}: {' against '.join(sides)}"
    tasks = counted_noun(row["n_tasks"], "task")
    if row["n_unshared"]:
        tasks += f" shared and {row['n_unshared']:,} others"
    text = f"{' ahead of '.join(sides) if row['decided'] else open_pair} on {tasks}"
    if with_difference:
        bounds = sorted(math.copysign(1, row["estimate"]) * row[bound] for bound in ("low", "high"))
        unit = "points" if is_share else row["unit"]
        text += f", difference {format_interval(abs(row['estimate']), *bounds, percent=is_share, unit=unit)}"
    reason = f" ({why})" if (why := why_undecided(row)) else ""
    return f"{before}{text}{_chance(row)}{reason}."


def _nearest_pair(decided: int, pairs: int, row: Mapping[Hashable, Any] | None, first: int = 0) -> str:
    """Count the decided pairs, of many models those of the `first`, and describe the one nearest to a decision."""
    count = f"{decided} of {counted_noun(pairs, 'pair')}{f' of the first {first} models' * bool(first)} decided"
    if not row or (pairs > 1 and math.isnan(row["p_adjusted"])):
        return f"{count}."
    return _short_pair(row, f"{count}; " * (pairs > 1), with_difference=False)


def _plan(
    difference: float,
    models: Sequence[str],
    tasks: Mapping[int, float],
    n_tasks: int,
    is_share: bool,
    unit: str,
) -> str:
    """Say how many tasks, run once or several times, show a true difference."""
    size = format_interval(difference, None, None, percent=is_share, unit="points" if is_share else unit)
    what = f"{size} between {_short(models[0])} and {_short(models[1])}, as observed" if models else f"{size}"
    ways = []
    for repeats, count in tasks.items():
        if count == count:
            number = counted_noun(int(count), "task") if math.isfinite(count) else "more than ten million tasks"
            ways.append(f"{number} run {'once' if repeats == 1 else f'{repeats} times'}")
    return f"To show {what}, plan {' or '.join(ways)}; now a pair shares {counted_noun(n_tasks, 'task')} (80 % power)."


def _known(behind: Sequence[str], open: Sequence[str], few: bool, doubt: str = "", **_: Any) -> str:
    """Say which models the first one is ahead of, and which it is not separable from."""
    verdicts = {"ahead of": behind, "not separable from": open}
    known = "; ".join(f"{verdict} {_models(names)}" for verdict, names in verdicts.items() if names)
    return f"{known}{doubt * bool(behind)}" + "; the shared tasks are too few to tell" * few


HEADLINES: dict[str, str | Callable[..., str]] = {
    "rate": "{what}",
    "no_rate": "{what}: {warning}",
    "drop": "{what}",
    "no_runs": "{what}: no runs of this kind",
    "nothing": lambda ended, n, **_: _nothing(ended, n) if n else "no best model: no run was measured",
    "unnamed": "{what}; no run with one names its model",
    "one_model": "{what} of {model}",
    "apart": lambda models, n_sets, conditions=False, **_: (
        f"no best model: {_models(models)} {f'are in {n_sets} sets that ' * (n_sets < len(models))}share no tasks"
        + " under equal conditions" * conditions
    ),
    "cycle": lambda models, **_: f"no best model: of {_models(models)} each is better than another one",
    "tie": lambda models, **_: f"no model leads: {_models(models)} tie for first",
    "leads": lambda model, **values: f"{model} {'leads' if values['behind'] else 'is first'}; {_known(**values)}",
    "unlike": lambda models, **_: (
        f"no best model: under equal conditions none of {_models(models)} is shown to be better"
    ),
    "best": lambda model, what, basis="", unpaired=False, doubt="", **_: (
        f"best: {model} ({', '.join(filter(None, [what, basis, str(note('unpaired')) * unpaired]))}){doubt}"
    ),
}


def _nothing(ended: Mapping[str, int], n: int) -> str:
    """Say how runs ended of which none was measured."""
    ways = sorted(ended.items(), key=lambda item: -item[1])
    named = [f"{count:,} of {counted_noun(n, 'run')} ended with {way}" for way, count in ways[:1]]
    named += [f"{count:,} with {way}" for way, count in ways[1:]]
    return f"{join_first(named, MOST_WAYS, ' and {} more ways')}: no run was measured"


FINDINGS: dict[str, str | Callable[..., str]] = {
    "endings": _endings,
    "data": _data,
    "files": lambda files, names=NO_NOTES: " ".join(map(sentence, (files_text(files), *names.notes))),
    "copies": lambda pairs: sentence(note("copied", pairs=pairs)),
    "merged": lambda count: sentence(note("merged", count=count)),
    "absent": lambda **values: sentence(note("absent", **values)),
    "ranking": _ranking,
    "rate": _rate,
    "pair": _short_pair,
    "no_other": lambda model: f"These data hold no other model to compare {_short(model)} with.",
    "drop": _drop,
    "own_tasks": lambda tasks: (
        "The numbers of blocked agents have tasks of their own ("
        + ", ".join(f"{level:.0f}: {counted_noun(n, 'task')}" for level, n in tasks.items())
        + "): a drop may also come from harder tasks."
    ),
    "trend": trend_text,
    "no_trend": lambda models: (
        f"For {_models(models, 3)} no trend with blocked agents is shown, nor that there is none."
    ),
    "reach": reach_text,
    "points": lambda n, bands, earned, lost: (
        f"{counted_noun(n, 'episode')}: {', '.join(f'{count} {name}' for name, count in bands.items())}; "
        f"{earned:.2f} points earned, {lost:.2f} lost to invalid actions."
    ),
    "steps": _steps,
    "no_steps": "No step can be judged, so there is no success rate.",
    "failures": lambda n, ways, first: (
        f"{counted_noun(n, 'step')} failed or failed silently, in {counted_noun(ways, 'way')}: "
        + "; ".join(f"{kind} ({count})" for kind, count in first)
        + "."
    ),
    "same_executions": "{copies:,} of {n:,} histories hold the same executions as another one. They count once.",
    "cut": lambda cut, n: (
        f"Of {counted_noun(n, 'step')} that reported success, {cut:,} had results that were cut when stored."
    ),
    "alone": "There is one model only, so nothing is compared.",
    "nearest_pair": _nearest_pair,
    "plan": _plan,
    "undecided": undecided_text,
    **dict.fromkeys(("caveat", "conditions", "variants"), lambda notes: " ".join(map(sentence, notes.notes))),
}
