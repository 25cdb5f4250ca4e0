"""Describe in sentences what runs show: findings of the overview, the comparison and the report on blocked agents."""

from collections.abc import Sequence

import pandas as pd

from evalkit.kinds import Example, Finding, counted_noun, data_finding, endings_finding, examples_of
from evalkit.mindcraft.analysis.comparison import DIRECTIONS, detectable
from evalkit.mindcraft.analysis.rates import counted, headline
from evalkit.mindcraft.analysis.task_types import cooking
from evalkit.mindcraft.format import CompletionStatus
from evalkit.mindcraft.table import FLAGS
from evalkit.stats import format_interval

FEW_TASKS = 10  # below this an interval says little, which a sentence points out
ENDINGS = {
    CompletionStatus.SUCCESS: "a success status without a score of 1",
    CompletionStatus.FAILED_SCORE_ZERO: "a score of zero",
    CompletionStatus.FAILED_PARTIAL_SCORE: "a partial score",
    CompletionStatus.TIMED_OUT: "timed out",
    CompletionStatus.NO_SCORE_LOGGED: "no score logged",
    CompletionStatus.LOG_FILE_ERROR: "an unreadable log",
}


def findings(
    sides: pd.DataFrame, pairs: pd.DataFrame, ledger: pd.DataFrame, opposite: Sequence[Example] = ()
) -> list[Finding]:
    """Describe what one model achieved, against what, how its other runs ended, and what is doubtful.

    Parameters
    ----------
    sides : DataFrame
        As `focus` returns it.
    pairs : DataFrame
        The comparison of the two sides on the tasks they share, as `evalkit.compare.pairs` returns it.
    ledger : DataFrame
    opposite : sequence of Example
        Tasks with opposite outcomes on the two sides, as `evalkit.compare.examples` returns them.
    """
    model = str(sides["side"].cat.categories[0])
    model_runs = sides[sides["side"] == model]
    sentence = "".join(pairs["sentence"]).replace("all others is better", "all others together are better")
    against = sentence or f"There is no other model in these data to compare {model} with."
    return [
        Finding(_rate(model_runs, f"the success rate of {model}"), "Success", _either(model_runs)),
        Finding(against, "Success", tuple(opposite)),
        *data_findings(model_runs, ledger),
    ]


def data_findings(runs: pd.DataFrame, ledger: pd.DataFrame, endings: str = "How runs ended") -> list[Finding]:
    """Describe how the runs without success ended, below the heading `endings`, and what is doubtful in the data."""
    fresh = counted(runs)
    failed = fresh[~fresh["overall_is_successful"]]
    counts = failed["overall_completion_status"].value_counts()
    ways = {ENDINGS[CompletionStatus(str(status))]: int(n) for status, n in counts.items()}
    ended = [failed["overall_completion_status"].eq(status) for status in counts.index]
    examples = examples_of(failed, dict(zip(ways, ended, strict=True)))
    return [endings_finding(ways, len(fresh), "run", endings, examples), data_finding(runs, FLAGS, ledger, "run")]


def _blocked(runs: pd.DataFrame) -> tuple[Example, ...]:
    """Return a success with the fewest blocked agents and a failure with the most, and the other way round."""
    fresh = counted(cooking(runs))
    number, succeeded = fresh["n_blocked_agents"], fresh["overall_is_successful"].astype(bool)
    least, most = number.eq(number.min()).fillna(False), number.eq(number.max()).fillna(False)
    if number.nunique() < 2:
        return ()
    groups = {
        f"a success with {number.min()} blocked": least & succeeded,
        f"a failure with {number.max()} blocked": most & ~succeeded,
        f"a success with {number.max()} blocked": most & succeeded,
    }
    return examples_of(fresh, groups)


def _either(runs: pd.DataFrame) -> tuple[Example, ...]:
    """Return a success and a failure."""
    fresh = counted(runs)
    succeeded = fresh["overall_is_successful"].astype(bool)
    return examples_of(fresh, {"a success": succeeded, "a failure": ~succeeded})


def blocked_findings(runs: pd.DataFrame, trend: pd.DataFrame, ledger: pd.DataFrame) -> list[Finding]:
    """Describe whether success of cooking runs changes with the number of blocked agents, and what is doubtful.

    `trend` is as `cooking_trend` returns it.
    """
    rate = _rate(cooking(runs), "cooking success of all models together")
    blocked = [Finding(rate, "Success by number of blocked agents", _either(cooking(runs)))]
    if len(trend):
        blocked.append(Finding(_trends(trend), "Is there a trend?", _blocked(runs)))
        open_models = set(trend.loc[~trend["direction"].isin(DIRECTIONS), "model_name"])
        reach = [line for model, line in detectable(runs).items() if model in open_models]
        blocked += [Finding(line, "What can and cannot be concluded") for line in reach[:1]]
    return [*blocked, *data_findings(runs, ledger, "Runs without a score")]


def _rate(runs: pd.DataFrame, what: str) -> str:
    row = headline(runs, what)
    if pd.isna(row.get("estimate", float("nan"))):
        return f"There is no rate: {row['label']}."
    value = format_interval(row["estimate"], row["low"], row["high"])
    n, tasks = counted_noun(int(row["n"]), "run"), counted_noun(int(row["n_clusters"]), "task")
    unmeasured = int(row["n_not_measured"])
    without = f", {unmeasured} of them not measured and counted as {'a failure' if unmeasured == 1 else 'failures'}"
    caveat = " So few tasks leave it open what the rate is on others." if row["n_clusters"] < FEW_TASKS else ""
    return f"{what[:1].upper()}{what[1:]} is {value} ({n} of {tasks}{without * bool(unmeasured)}).{caveat}"


def _trends(trend: pd.DataFrame) -> str:
    """Describe for which models success falls or rises with blocked agents; of few models each has a sentence."""
    is_shown = trend["direction"].isin(DIRECTIONS)
    if len(trend) <= 2 or is_shown.all():
        return " ".join(trend["sentence"])
    *most, last = sorted(trend.loc[~is_shown, "model_name"])
    names = f"{', '.join(most)} and {last}" if most else last
    rest = f"For {names} no trend with the number of blocked agents is shown, which is no proof that there is none."
    return " ".join([*trend.loc[is_shown, "sentence"], rest])
