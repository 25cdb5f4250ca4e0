"""Describe in sentences what runs show: findings of the overview, the comparison and the report on blocked agents."""

from collections.abc import Sequence

import pandas as pd

from evalkit.display.words import DIRECTIONS
from evalkit.kinds import Example, Finding, data_finding, endings_finding, examples_of, outcomes
from evalkit.kinds.findings import doubts
from evalkit.kinds.runs import copied
from evalkit.mindcraft.analysis.comparison import detectable
from evalkit.mindcraft.analysis.rates import counted, headline
from evalkit.mindcraft.analysis.task_types import cooking
from evalkit.mindcraft.format import OUTCOMES, STATUSES
from evalkit.mindcraft.kind import KIND
from evalkit.mindcraft.table import FLAGS

# of runs that did not succeed
ENDINGS = {code: status.label for code, status in STATUSES.items()} | {
    "SUCCESS": "a success status without a score of 1"
}


def findings(
    sides: pd.DataFrame,
    pairs: pd.DataFrame,
    ledger: pd.DataFrame,
    opposite: Sequence[Example] = (),
    planned: Sequence[str] = (),
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
    planned : sequence of str
        Tasks that were to be run, as `planned_tasks` lists them.
    """
    model = str(sides["side"].cat.categories[0])
    model_runs = sides[sides["side"] == model]
    against = Finding("no_other", "Success", {"model": model})
    if len(pairs):
        other = str(sides["side"].cat.categories[1])
        pooled = [other] if (sides.loc[sides["side"] == other, "model_name"] != other).any() else []
        row = pairs.to_dict("records")[0]
        against = Finding("pair", "Success", {"row": row, "together": pooled}, tuple(opposite))
    return [
        _rate(model_runs, f"the success rate of {model}", "Success"),
        against,
        *doubts(outcomes(sides, "is_successful", KIND), planned, [model]),
        *data_findings(model_runs, ledger),
    ]


def data_findings(runs: pd.DataFrame, ledger: pd.DataFrame, endings: str = "How runs ended") -> list[Finding]:
    """Describe how the runs without success ended, below the heading `endings`, and what is doubtful in the data."""
    fresh = counted(runs)
    failed = fresh[~fresh["overall_is_successful"]]
    counts = failed["overall_completion_status"].value_counts()
    ways = {ENDINGS[str(status)]: int(n) for status, n in counts.items()}
    ended = [failed["overall_completion_status"].eq(status) for status in counts.index]
    examples = examples_of(failed, dict(zip(ways, ended, strict=True)))
    ended_so = endings_finding(ways, len(fresh), "run", endings, examples)
    return [ended_so, *_copies(runs), data_finding(runs, FLAGS, ledger, "run")]


def _copies(runs: pd.DataFrame) -> list[Finding]:
    """Say whose logs stale copies hold, and whose runs they stand for; nothing where there are none."""
    if not (pairs := copied(runs, KIND)):
        return []
    copies = runs[runs["copy_of"].notna()]
    links = tuple(Example("a copy", *ids) for ids in copies[["run_id", "copy_of"]].head(1).itertuples(index=False))
    return [Finding("copies", "Data quality", {"pairs": pairs}, links)]


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


def _rate(runs: pd.DataFrame, what: str, section: str) -> Finding:
    """Find the rate of runs, with a success and a failure as examples."""
    fresh = counted(runs)
    succeeded = fresh["overall_is_successful"].astype(bool)
    failed = ~succeeded & fresh["status"].map(OUTCOMES).ne("not measured")
    examples = examples_of(fresh, {"a success": succeeded, "a failure": failed})
    return Finding("rate", section, {"headline": headline(runs, what)}, examples)


def blocked_findings(runs: pd.DataFrame, trend: pd.DataFrame, ledger: pd.DataFrame) -> list[Finding]:
    """Describe whether success of cooking runs changes with the number of blocked agents, and what is doubtful.

    `trend` is as `cooking_trend` returns it.
    """
    blocked = [_rate(cooking(runs), "cooking success of all models together", "Success by number of blocked agents")]
    if len(trend):
        shown = trend["direction"].isin(DIRECTIONS)
        each = trend if len(trend) <= 2 else trend[shown]  # of few models each has a sentence
        rest = sorted(trend.loc[~shown, "model_name"]) if len(trend) > 2 else []
        values = {"trends": each.to_dict("records"), "models": rest}
        blocked.append(Finding("trends", "Is there a trend?", values, _blocked(runs)))
        open_models = set(trend.loc[~shown, "model_name"])
        reach = [gap for gap in detectable(runs) if gap["model"] in open_models]
        blocked += [Finding("reach", "What can and cannot be concluded", gap) for gap in reach[:1]]
    return [*blocked, *data_findings(runs, ledger, "Runs without a score")]
