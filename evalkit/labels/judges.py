"""Evaluate judges with hand labels: their agreement with people, the rates they give, and corrected rates."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from evalkit._notes import Notes, note
from evalkit._text import check_number, counted_noun, format_interval
from evalkit.io import SourceError
from evalkit.kinds import Finding, Logs, sections
from evalkit.kinds.selection import run_ids_of
from evalkit.labels import words
from evalkit.labels.answers import UNIT, Majority, Table, majority, of_question
from evalkit.labels.sample import draw
from evalkit.stats import agreement, combined, corrected_difference, corrected_rate, half_width_after, labels_for
from evalkit.stats.intervals import Estimate, proportion_interval

CONSTANTS = {"always": 1.0, "never": 0.0}  # trivial judges that always give the same verdict
UNLIKE = 0.001  # level of the test of whether labelled units resemble the others
UNEVEN = 0.1  # level of the test of whether labels are proportional to models; if not, an overall rate is biased
MORE = 40  # number of additional labels for which the output gives the width of the interval
MOST_PAIRS = 200  # maximum number of pairs of models per judge


@dataclass(frozen=True)
class Comparison:
    """Units with labels and verdicts.

    `units` has a row per unit, in a random order in which people can label more units: run_id, turn, model_name,
    outcome, task, label (NaN if there is none). `verdicts` has the same rows, and a column per judge (NaN without a
    verdict).
    """

    units: pd.DataFrame
    verdicts: pd.DataFrame
    labels: pd.DataFrame  # labels by all people: run_id, turn, label, who
    people: Majority
    unknown: dict[str, int]  # numbers of labels and of verdicts whose ids do not occur in these logs
    empty: dict[Any, int]  # numbers of verdicts without a value, by judge
    problems: list[str]  # descriptions of rows that could not be used

    @property
    def is_labelled(self) -> np.ndarray:
        """Which units have a label."""
        return self.units["label"].notna().to_numpy()


def compare_judges(
    logs: Logs, labels: Table, verdicts: Table, *, runs: pd.DataFrame | None = None, question: str = "", seed: int = 0
) -> Comparison:
    """Join labels and verdicts with the runs of logs, or with the turns of agents if turns were labelled.

    Parameters
    ----------
    logs : Logs
        The logs of the runs, with and without labels.
    labels : Table
        Result of `read_labels`; if several people labelled a unit, the majority counts.
    verdicts : Table
        Result of `read_verdicts`.
    runs : DataFrame, optional
        Rows of the first table; by default all. Runs that are excluded from all rates are ignored.
    question : str
        The question whose labels count, if there are several.
    seed : int
        Seed of the order in which units were drawn.

    Returns
    -------
    Comparison
        One row per unit, with its label and the verdict of each judge.

    Raises
    ------
    SourceError
        If no label, or no verdict, belongs to a unit of these logs, or if ids may refer to different runs.

    Examples
    --------
    >>> comparison = labels.compare_judges(logs, given, verdicts)
    >>> len(comparison.units), int(comparison.is_labelled.sum()), list(comparison.verdicts)
    (240, 56, ['judge-a', 'judge-b', 'judge-c'])
    """
    check_number("seed", seed, is_whole=True)
    tables = {"labels": of_question(labels.rows, question), "verdicts": verdicts.rows}
    units = draw(logs, runs, turns=bool(tables["labels"]["turn"].notna().any()), seed=seed)
    known = pd.MultiIndex.from_frame(units[UNIT])
    unknown = {}
    run_ids = run_ids_of([given["run_id"] for given in tables.values()], logs.runs, logs.chosen)
    for (name, given), own_ids in zip(tables.items(), run_ids, strict=True):
        table = given.assign(run_id=own_ids)
        is_known = pd.MultiIndex.from_frame(table[UNIT]).isin(known)
        if not is_known.any():
            raise SourceError(f"no {name} of these {'runs' if units['turn'].isna().all() else 'turns'}: check the ids")
        unknown[name] = int((~is_known).sum())
        tables[name] = table[is_known]
    own_labels = tables["labels"].drop_duplicates([*UNIT, "who"], keep="last")  # a unit may have had two ids
    people = majority(own_labels)
    if people.rows.empty:
        raise SourceError("no unit has a label: people left all undecided, or half of them disagree")
    units = units.merge(people.rows, on=UNIT, how="left")
    judged = tables["verdicts"].replace({"judge": {name: f"{name} (judge)" for name in CONSTANTS}})
    is_yes_or_no = judged["verdict"].isin([0.0, 1.0]) | judged["verdict"].isna()
    gives_labels = is_yes_or_no.groupby(judged["judge"]).all()
    means = judged.groupby([*UNIT, "judge"], dropna=False, sort=False, as_index=False)["verdict"].mean()
    wide = means.pivot(index=UNIT, columns="judge", values="verdict")
    wide = wide.reindex(known).reset_index(drop=True).rename_axis(columns=None)
    empty = judged.loc[judged["verdict"].isna(), "judge"].value_counts().to_dict()
    problems = labels.problems + verdicts.problems
    for judge in gives_labels.index[gives_labels]:
        if ties := int(wide[judge].eq(0.5).sum()):
            problems.append(f"{judge}: {counted_noun(ties, 'unit')} with as many verdicts for yes as for no")
        wide[judge] = wide[judge].where(wide[judge].ne(0.5)).round()
    return Comparison(units, wide, own_labels, people, unknown, empty, problems)


def judge_table(comparison: Comparison) -> pd.DataFrame:
    """Estimate for each judge its raw rate, its corrected rate, and its agreement with people.

    Parameters
    ----------
    comparison : Comparison
        Result of `compare_judges`.

    Returns
    -------
    DataFrame
        judge, n (labels), n_tasks, units, n_judged (units with a verdict), raw (the judge's share of yes; NaN for
        scores), estimate, low, high (the corrected rate over all units), half_width (of the interval), after
        (half-width after 40 more labels; NaN if there are fewer unlabelled units), method, warning, measure,
        agreement_estimate with bounds (Cohen's kappa with the labels), accuracy (share of verdicts equal to the label).
        Rates are shares from 0 to 1. The constants `always` and `never` are included as judges; their corrected rate is
        the rate of the labels.

    Examples
    --------
    >>> table = labels.judge_table(comparison).set_index("judge")
    >>> print(table.loc["judge-b", ["raw", "estimate", "low", "high"]].astype(float).round(2).to_dict())
    {'raw': 0.32, 'estimate': 0.58, 'low': 0.48, 'high': 0.68}
    """
    rows = []
    for judge in [*comparison.verdicts, *CONSTANTS]:
        verdicts = _verdicts_of(comparison, judge)
        found = _overall(comparison, verdicts)
        row = _row(judge, comparison.units, verdicts, found)
        row["warning"] += _unlike(f"verdicts of {judge}", verdicts, comparison.is_labelled)
        row["warning"] += _unlike("success", comparison.units["outcome"].eq("success"), comparison.is_labelled)
        both = comparison.is_labelled & np.isfinite(verdicts)
        if both.any() and not np.isnan(row["raw"]):
            label = comparison.units["label"].to_numpy(dtype=float)
            kappa = agreement(label[both], verdicts[both])
            row |= {"agreement_estimate": kappa.estimate, "agreement_low": kappa.low, "agreement_high": kappa.high}
            row["accuracy"] = (label[both] == verdicts[both]).mean()
        rows.append(row)
    table = pd.DataFrame(rows)
    table["warning"] = [one.without("constant_judge") for one in table["warning"]]  # obvious for the constants
    return table


def _verdicts_of(comparison: Comparison, judge: str) -> np.ndarray:
    """Return the verdicts of a judge or constant on all units."""
    if judge in comparison.verdicts:
        return comparison.verdicts[judge].to_numpy(dtype=float)
    return np.full(len(comparison.units), CONSTANTS[judge])


def _row(judge: str, units: pd.DataFrame, verdicts: np.ndarray, found: Estimate) -> dict[str, Any]:
    """Return the row of the result for a judge's verdicts on some units, with the corrected rate."""
    known = verdicts[np.isfinite(verdicts)]
    is_yes_or_no = len(known) and np.isin(known, (0.0, 1.0)).all()
    arguments = _arguments(units, verdicts)
    after = np.nan
    if len(arguments[2]) >= MORE:
        after = _scale(found, arguments) * half_width_after(MORE, *arguments)
    return {
        "judge": judge,
        "n": found.n,
        "n_tasks": found.n_tasks,
        "units": len(units),
        "n_judged": len(known),
        "raw": known.mean() if is_yes_or_no else np.nan,
        "estimate": found.estimate,
        "low": found.low,
        "high": found.high,
        "half_width": (found.high - found.low) / 2,
        "after": after,
        "method": found.method,
        "warning": found.warning,
        "measure": "share of yes, corrected by labels",
    }


def _arguments(units: pd.DataFrame, verdicts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the arguments of `corrected_rate`: labels, verdicts on labelled and on other units, and all tasks."""
    label, task = units["label"].to_numpy(dtype=float), units["task"].to_numpy()
    is_labelled = np.isfinite(label)
    tasks = np.concatenate([task[is_labelled], task[~is_labelled]])
    return label[is_labelled], verdicts[is_labelled], verdicts[~is_labelled], tasks


def _scale(found: Estimate, arguments: tuple[np.ndarray, ...]) -> float:
    """Return the ratio of the width of `found`, which may combine models, to the width with all labels pooled."""
    together = half_width_after(0, *arguments)
    return (found.high - found.low) / 2 / together if together > 0 else 1.0


def _of_models(comparison: Comparison, verdicts: np.ndarray) -> dict[str, Estimate]:
    """Estimate the corrected rate of each model from the labels of its units."""
    groups = comparison.units.groupby("model_name")
    return {str(model): corrected_rate(*_arguments(own, verdicts[own.index])) for model, own in groups}


def _overall(comparison: Comparison, verdicts: np.ndarray) -> Estimate:
    """Estimate the rate over all units: from pooled labels if they are proportional to models, else by model."""
    units, share = comparison.units, comparison.is_labelled.mean()
    found = corrected_rate(*_arguments(units, verdicts))
    labels_of = units.groupby("model_name")["label"]
    sizes, counts = labels_of.size(), labels_of.count()
    if len(sizes) == 1 or share == 1:
        return found
    distance = float(((counts - sizes * share) ** 2 / (sizes * share * (1 - share))).sum())
    if special.chdtrc(len(sizes) - 1, distance) >= UNEVEN:
        return found
    if unlabelled := int(counts.eq(0).sum()):
        return found._replace(warning=note("unlabelled_models", count=unlabelled) + found.warning)
    found = combined(list(_of_models(comparison, verdicts).values()), (sizes / len(units)).tolist())
    low, high = max(found.low, 0.0), min(found.high, 1.0)
    return found._replace(low=low, high=high, warning=note("by_model") + found.warning.without("few"))


def _unlike(what: str, given: Any, labelled: np.ndarray) -> Notes:
    """Note if values, such as verdicts, differ more between labelled and other units than by chance."""
    values = np.asarray(given, dtype=float)
    known = np.isfinite(values)
    own, others = values[labelled & known], values[~labelled & known]
    if min(len(own), len(others)) < 2:
        return Notes()
    spread = values[known].var(ddof=1) * (1 / len(own) + 1 / len(others))
    gap = own.mean() - others.mean()
    if spread <= 0 or special.chdtrc(1, gap**2 / spread) >= UNLIKE:
        return Notes()
    return note("unlike_labels", what=what, labelled=float(own.mean()), others=float(others.mean()))


def judges_to_show(table: pd.DataFrame) -> pd.DataFrame:
    """Return `judge_table` or `model_table` for display, with raw rates and agreement as text."""
    shown = table[[name for name in ("judge", "model_name") if name in table]].copy()
    shown["judge alone"] = intervals(table, "raw")
    shown[["estimate", "low", "high", "n"]] = table[["estimate", "low", "high", "n"]]
    if "agreement_estimate" in table:
        shown["kappa [95 %]"] = intervals(table, "agreement_estimate", "agreement_low", "agreement_high", percent=False)
        shown["same as people"] = intervals(table, "accuracy")
    shown[f"after {MORE} more labels"] = [f"± {100 * after:.0f}" if after == after else "–" for after in table["after"]]
    return shown.assign(method=table["method"], warning=table["warning"])


def intervals(table: pd.DataFrame, estimate: str, low: str = "", high: str = "", *, percent: bool = True) -> list[str]:
    """Format a column of estimates, with their bounds if named."""
    bounds = table.reindex(columns=[estimate, low, high]).to_numpy(dtype="float64")
    return [format_interval(*row, percent=percent) for row in bounds]


def model_table(comparison: Comparison) -> pd.DataFrame:
    """Estimate for each judge and model the judge's rate, and the rate corrected with the model's labels.

    Parameters
    ----------
    comparison : Comparison
        Result of `compare_judges`.

    Returns
    -------
    DataFrame
        One row per judge and model, with model_name and the columns of `judge_table` up to measure.

    Examples
    --------
    >>> table = labels.model_table(comparison)
    >>> table[table["judge"] == "judge-a"].set_index("model_name")[["raw", "estimate"]].round(2)
                  raw  estimate
    model_name
    alder-large  0.64      0.60
    birch-70b    0.54      0.48
    cedar-8b     0.39      0.53
    """
    rows = []
    for judge in map(str, comparison.verdicts):
        verdicts = _verdicts_of(comparison, judge)
        for model, units in comparison.units.groupby("model_name"):
            own = verdicts[units.index]
            found = corrected_rate(*_arguments(units, own))
            rows.append({"model_name": model, **_row(judge, units, own, found)})
    return pd.DataFrame(rows)


def differences(comparison: Comparison) -> pd.DataFrame:
    """Estimate for each judge and pair of models the difference between their corrected rates.

    Each model is corrected with its own labels, because a judge may err more on one model than on the other.

    Parameters
    ----------
    comparison : Comparison
        Result of `compare_judges`.

    Returns
    -------
    DataFrame
        judge, model_a, model_b, n (labels of both models), n_tasks, estimate (a minus b, from −1 to 1), low, high,
        method, warning; at most 200 pairs per judge.

    Examples
    --------
    >>> labels.differences(comparison)[["model_a", "model_b", "n", "estimate"]].head(1).round(2)
           model_a    model_b   n  estimate
    0  alder-large  birch-70b  36      0.13
    """
    rows = []
    for judge in map(str, comparison.verdicts):
        found = _of_models(comparison, _verdicts_of(comparison, judge))
        for a, b in islice(combinations(found, 2), MOST_PAIRS):
            pair = corrected_difference(found[a], found[b])
            rows.append({"judge": judge, "model_a": a, "model_b": b, **pair._asdict()})
    names = "judge model_a model_b n n_tasks estimate low high method warning"
    return pd.DataFrame(rows, columns=names.split())


def findings(comparison: Comparison) -> list[Finding]:
    """Describe the corrected rate of the judge with the narrowest interval, the range of judges, and doubts.

    Parameters
    ----------
    comparison : Comparison
        Result of `compare_judges`.

    Returns
    -------
    list of Finding
        The corrected rate first, then the range of judges, judges that are no better than a constant, the agreement of
        people, caveats, and unused rows.

    Examples
    --------
    >>> [finding.code for finding in labels.findings(comparison)]
    ['corrected', 'spread', 'no_better', 'people']
    """
    table = judge_table(comparison)
    judges = table[~table["judge"].isin(list(CONSTANTS))]
    answer = judges[judges["judge"].eq(first_judge(table))].iloc[0]
    values = {name: answer[name] for name in ("judge", "n", "raw", "estimate", "low", "high", "after")}
    found = [Finding("corrected", sections.JUDGES, {**values, "more": MORE}, template=words.corrected)]
    raw = judges["raw"].dropna()
    if len(raw) > 1:
        ends = {"lowest": raw.min(), "highest": raw.max()}
        ends |= {"low": judges["estimate"].min(), "high": judges["estimate"].max()}
        found.append(Finding("spread", sections.JUDGES, {"judges": len(raw), **ends}, template=words.spread))
    accuracy = table.set_index("judge")["accuracy"]
    constant = str(accuracy[list(CONSTANTS)].idxmax())
    known = accuracy.drop(list(CONSTANTS)).dropna()
    if len(known):
        poor = known.index[known <= accuracy[constant]].tolist()
        values = {"judges": poor, "of": len(known), "constant": constant, "accuracy": float(accuracy[constant])}
        found.append(Finding("no_better", sections.JUDGES, values, template=words.no_better))
    people = comparison.people
    if people.people > 1:
        counts = {"several": people.several, "disagreed": people.disagreed, "ties": people.ties}
        values = {"number": people.people, **counts, "agreement": people_agreement(comparison)._asdict()}
        found.append(Finding("people", sections.JUDGES, values, template=words.people))
    notes = answer["warning"].only("by_model", "unlabelled_models", "few")
    for warning in table["warning"]:  # doubts about the labels affect the rates of all judges
        notes += warning.only("unlike_labels")
    if notes:
        found.append(Finding("caveat", sections.JUDGES, {"notes": notes}))
    unknown = {name: count for name, count in comparison.unknown.items() if count}
    unused: dict[str, Any] = {"problems": comparison.problems, "unknown": unknown, "empty": comparison.empty}
    unused["undecided"] = people.undecided
    if any(unused.values()):
        found.append(Finding("not_used", sections.DATA_QUALITY, unused, template=words.not_used))
    return found


def first_judge(table: pd.DataFrame) -> str:
    """Return the judge of `judge_table` with the narrowest interval."""
    judges = table[~table["judge"].isin(list(CONSTANTS))]
    return str(judges.sort_values("half_width", kind="stable")["judge"].iloc[0])


def precision_recall(verdicts: pd.DataFrame, labels: pd.DataFrame) -> pd.DataFrame:
    """Estimate precision and recall of judges or detectors, and of the constants `always` and `never`.

    Parameters
    ----------
    verdicts : DataFrame
        run_id, judge, label (1 or 0; rows with other values are ignored), optionally turn. Units that a detector did
        not report need a row with 0.
    labels : DataFrame
        run_id, label (1 or 0), optionally turn; one row per unit.

    Returns
    -------
    DataFrame
        judge, n (units with a label and a verdict), precision_estimate, precision_low, precision_high, precision_n
        (units with the verdict yes), recall_estimate, recall_low, recall_high, recall_n (units with the label yes),
        accuracy.
        Precision is NaN if no verdict is yes, and recall if no label is yes. Both apply to units like the labelled
        ones.

    Examples
    --------
    >>> said = pd.DataFrame({"run_id": list("abcd"), "judge": "j", "label": [1, 1, 0, 0]})
    >>> true = pd.DataFrame({"run_id": list("abcd"), "label": [1, 0, 1, 0]})
    >>> found = labels.precision_recall(said, true)
    >>> found["judge"].tolist(), found["recall_estimate"].tolist()
    (['j', 'always', 'never'], [0.5, 1.0, 0.0])
    """
    keys = [name for name in UNIT if name in verdicts and name in labels]
    labels = labels[labels["label"].isin([0, 1])]
    constants = [labels[keys].assign(judge=name, label=said) for name, said in CONSTANTS.items()]
    both = pd.concat([verdicts, *constants]).merge(labels, on=keys, suffixes=("", "_true"))
    both = both[both["label"].isin([0, 1])]
    rows = []
    for judge, own in both.groupby("judge", sort=False):
        said, true = own["label"].eq(1), own["label_true"].eq(1)
        row = {"judge": judge, "n": len(own)}
        for what, given in (("precision", said), ("recall", true)):
            found = proportion_interval(int((said & true).sum()), int(given.sum()))
            row |= {f"{what}_estimate": found.estimate, f"{what}_low": found.low, f"{what}_high": found.high}
            row[f"{what}_n"] = found.n
        rows.append({**row, "accuracy": (said == true).mean()})
    return pd.DataFrame(rows)


def detector_verdicts(comparison: Comparison, events: pd.DataFrame) -> pd.DataFrame:
    """Convert events that detectors found to verdicts on the labelled units: 1 if there is an event, else 0.

    Parameters
    ----------
    comparison : Comparison
        Result of `compare_judges`.
    events : DataFrame
        Result of `evalkit.failures.events`.

    Returns
    -------
    DataFrame
        run_id, turn, judge (the detector), label; one row per labelled unit and detector with any event.

    Examples
    --------
    >>> events = pd.DataFrame({"run_id": comparison.units["run_id"].head(9), "turn": 1, "event": "loop"})
    >>> found = labels.detector_verdicts(comparison, events)
    >>> len(found), int(found["label"].sum())
    (56, 2)
    """
    units = comparison.units.loc[comparison.is_labelled, UNIT]
    table = units.merge(pd.DataFrame({"judge": events["event"].unique()}), how="cross")
    keys = UNIT if units["turn"].notna().any() else UNIT[:1]
    found = pd.MultiIndex.from_frame(events[[*keys, "event"]].astype("object"))
    return table.assign(label=pd.MultiIndex.from_frame(table[[*keys, "judge"]].astype("object")).isin(found) * 1.0)


def verdicts_and_labels(comparison: Comparison) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the verdicts and the labels of the labelled units, as arguments for `precision_recall`.

    Parameters
    ----------
    comparison : Comparison
        Result of `compare_judges`.

    Returns
    -------
    verdicts : DataFrame
        run_id, turn, judge, label; one row per labelled unit and judge.
    labels : DataFrame
        run_id, turn, label; one row per labelled unit.

    Examples
    --------
    >>> found = labels.precision_recall(*labels.verdicts_and_labels(comparison))
    >>> found.set_index("judge")["recall_estimate"].round(2).to_dict()
    {'judge-a': 0.94, 'judge-b': 0.53, 'judge-c': 0.97, 'always': 1.0, 'never': 0.0}
    """
    rows = _labelled_verdicts(comparison)
    verdicts = rows[[*UNIT, "judge"]].assign(label=rows["verdict"])
    return verdicts, rows[[*UNIT, "label"]].drop_duplicates()


def _labelled_verdicts(comparison: Comparison) -> pd.DataFrame:
    """Return one row per labelled unit and judge: the columns of units, judge and verdict."""
    wide = comparison.verdicts.rename_axis(columns="judge")
    long = pd.DataFrame({"verdict": wide.stack(future_stack=True)}).reset_index("judge")
    return comparison.units[comparison.is_labelled].join(long)


def people_agreement(comparison: Comparison) -> Estimate:
    """Estimate the agreement of people: Cohen's kappa for two, Krippendorff's alpha for more.

    NaN, with the reason in `warning`, for one person, or for more than two without the package krippendorff.
    """
    wide = comparison.labels.pivot_table(index=UNIT, columns="who", values="label", dropna=False, observed=True)
    raters = [wide[name] for name in wide]
    nothing = Estimate(np.nan, np.nan, np.nan, 0, 0, "", warning=note("one_person"))
    if len(raters) < 2:
        return nothing
    try:
        return agreement(*raters)
    except ImportError:
        return nothing._replace(warning=note("no_krippendorff"))


def disagreements(comparison: Comparison) -> pd.DataFrame:
    """List the labelled units on which a judge disagrees with people, first the units with most such judges.

    Parameters
    ----------
    comparison : Comparison
        Result of `compare_judges`.

    Returns
    -------
    DataFrame
        run_id, turn, model_name, task, judge, label (the majority of people), verdict. Excludes scores.

    Examples
    --------
    >>> labels.disagreements(comparison)["judge"].value_counts().to_dict()
    {'judge-b': 15, 'judge-c': 14, 'judge-a': 4}
    """
    long = _labelled_verdicts(comparison)
    wrong = long[long["verdict"].isin([0.0, 1.0]) & long["verdict"].ne(long["label"])]
    number = wrong.groupby(UNIT, dropna=False)["judge"].transform("size")
    order = wrong.assign(_number=-number).sort_values(["_number", "task", "model_name", "turn", "judge"])
    return order[[*UNIT, "model_name", "task", "judge", "label", "verdict"]].reset_index(drop=True)


def next_units(comparison: Comparison, judge: str, number: int = 20) -> pd.DataFrame:
    """List the units to label next, whose labels narrow the intervals of the models' rates most.

    Each next unit belongs to the model whose interval it narrows most. Within a model, units are in the random order of
    the sample. The labels are therefore random within each model, so the rates of models and the overall rate, as their
    weighted mean, remain valid. The units are not a random sample of all units.

    Parameters
    ----------
    comparison : Comparison
        Result of `compare_judges`.
    judge : str
        The judge whose corrected rates count.
    number : int
        Maximum number of units.

    Returns
    -------
    DataFrame
        run_id, turn, model_name; one row per unit, in the order in which to label them.

    Examples
    --------
    >>> labels.next_units(comparison, "judge-a")["model_name"].value_counts().to_dict()
    {'alder-large': 13, 'cedar-8b': 6, 'birch-70b': 1}
    """
    verdicts = _verdicts_of(comparison, judge)
    waiting = []
    for _, units in comparison.units.groupby("model_name"):
        arguments = _arguments(units, verdicts[units.index])
        own = units[units["label"].isna()].head(number)
        counts = range(len(own) + 1)
        if len(arguments[0]):
            widths = [half_width_after(more, *arguments) for more in counts]
        else:
            widths = [1 / (more + 1) for more in counts]  # a model without labels comes first
        gain = np.minimum.accumulate(-np.diff(widths))  # keeps units of a model in the order in which they were drawn
        waiting.append(own.assign(gain=gain))
    order = pd.concat(waiting).sort_values("gain", ascending=False, kind="stable")
    return order[[*UNIT, "model_name"]].head(number).reset_index(drop=True)


def label_plan(
    comparison: Comparison,
    judge: str,
    half_widths: Sequence[float] = (0.1, 0.07, 0.05),
    more: Iterable[int] = (20, 40, 80),
) -> pd.DataFrame:
    """Plan how many random labels narrow the interval of a judge's corrected rate.

    Parameters
    ----------
    comparison : Comparison
        Result of `compare_judges`.
    judge : str
        The judge whose corrected rate counts.
    half_widths : sequence of float
        Half-widths to reach, as shares from 0 to 1.
    more : iterable of int
        Numbers of additional labels.

    Returns
    -------
    DataFrame
        more (additional labels; NaN if there is no label yet), half_width; one row per value of `half_widths` and of
        `more`, the fewest labels first.

    Examples
    --------
    >>> labels.label_plan(comparison, "judge-a", [0.05], [80]).round(2)
       more  half_width
    0  43.0        0.05
    1  80.0        0.04
    """
    verdicts = _verdicts_of(comparison, judge)
    arguments, found = _arguments(comparison.units, verdicts), _overall(comparison, verdicts)
    scale = _scale(found, arguments)
    rows = [(labels_for(width / scale, *arguments), width) for width in half_widths]
    rows += [(float(count), scale * half_width_after(count, *arguments)) for count in more]
    return pd.DataFrame(rows, columns=["more", "half_width"]).sort_values("more", ignore_index=True)
