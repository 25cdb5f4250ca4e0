"""Contents of notebooks on histories: findings, sentences, and tables made from frames."""

from collections.abc import Sequence

import pandas as pd

from evalkit._notes import NO_NOTES, Notes
from evalkit._text import counted_noun, sentence
from evalkit.io.sources import is_sample
from evalkit.io.text import cut_end
from evalkit.kinds import Example, Finding, Logs, sections
from evalkit.kinds.findings import MOST_EXAMPLES, files_of
from evalkit.steps import analysis, words
from evalkit.steps.judge import History
from evalkit.steps.record import CRITICAL, NOT_JUDGED, SILENT

SAMPLES = (
    "These samples were made for demonstration: a scripted plan, run on the 700 public blood cells that scanpy "
    "bundles. Tests, counts and errors are real; made-up gene sets replace GO, KEGG and Reactome, as their names show."
)


def describe_histories(histories: Sequence[History], source: str | Sequence[str] = "", chosen: Notes = NO_NOTES) -> str:
    """Describe what was read and what the samples are, and append the notes in `chosen`."""
    records = sum(len(history.records) for history in histories)
    text = f"{counted_noun(len(histories), 'history')} with {counted_noun(records, 'record')} of steps."
    if is_sample(source):
        text += f" {SAMPLES}"
    return " ".join([text, *map(sentence, chosen.notes)])


def answer_table(overview: pd.DataFrame) -> pd.DataFrame:
    """Return the confirmed and reported success of each history, the lowest first, with counts of its failures."""
    confirmed = {f"confirmed_{end}": end for end in ("estimate", "low", "high")}
    kept = ["history", *confirmed, "reported_estimate", "reported_low", "reported_high", "n", SILENT, "loops", "cut"]
    return overview[kept].rename(columns=confirmed)


def numbered(table: pd.DataFrame, position: str = "record") -> pd.DataFrame:
    """Number records and steps from 1 for display: `record` and `step` replace positions from 0."""
    names = {name: shown for name, shown in (("position", position), ("step_index", "step")) if name in table}
    return table.assign(**{name: table[name] + 1 for name in names}).rename(columns=names)


def short_steps(steps: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of steps that fit on a page; `remark` is the error or, without one, the summary."""
    remarks = steps[["silent_failure_reason", "error", "skip_reason", "summary"]]
    first = ["position", "step_index", "attempt", "function_name", "verdict"]
    last = ["result_type", "truncated", "cell_type", "history", "turn"]
    remark = remarks.bfill(axis="columns").iloc[:, 0].map(lambda text: cut_end(text, 300), na_action="ignore")
    return numbered(steps[first].assign(remark=remark).join(steps[last]))


def findings(logs: Logs) -> list[Finding]:
    """Find how many steps succeeded, how many only reported success, what failed, and which results were cut."""

    def examples(some: pd.DataFrame) -> tuple[Example, ...]:
        first = with_runs(some.drop_duplicates("function_name").head(MOST_EXAMPLES), logs.runs)
        rows = zip(*(first[name] for name in ("position", "function_name", "run_id", "turn")), strict=True)
        return tuple(Example(f"record {place + 1}, {function}", run, turn=turn) for place, function, run, turn in rows)

    steps, n = analysis.originals(logs.steps), len(analysis.originals(logs.runs))
    verdicts, rates = steps["verdict"], analysis.success_rates(steps, []).set_index("success")
    results = [Finding("no_steps", sections.SUCCESS, {"n_histories": n}, template=words.NO_STEPS)]
    if len(rates):
        silent = verdicts.eq(SILENT)
        wrong = silent if silent.any() else ~verdicts.isin(("success", *NOT_JUDGED))
        both = {which: rates.loc[which].to_dict() for which in (analysis.CONFIRMED, analysis.REPORTED)}
        n_judged = steps.loc[~verdicts.isin(NOT_JUDGED), "history"].nunique()
        values = {"n": int(rates["n"].iloc[0]), "n_histories": n_judged, "silent": int(silent.sum()), **both}
        results = [Finding("steps", sections.SUCCESS, values, examples(steps[wrong]), words.steps)]
    if len(kinds := analysis.failure_kinds(steps)):
        ways = list(kinds.head(2)[["kind", "steps"]].itertuples(index=False, name=None))
        values = {"n": int(kinds["steps"].sum()), "ways": len(kinds), "first": ways}
        failed = steps[verdicts.isin(("failure", CRITICAL)).to_numpy()]
        results.append(Finding("failures", "failures", values, examples(failed), words.failures))
    successful = analysis.reporting_success(steps)
    if len(cut := successful[successful["truncated"]]):
        values = {"cut": len(cut), "n": len(successful)}
        results.append(Finding("cut", "cut", values, examples(cut), words.CUT))
    if n_copies := len(logs.runs) - n:
        values = {"copies": n_copies, "n": len(logs.runs)}
        results.append(Finding("same_executions", sections.DATA_QUALITY, values, template=words.SAME_EXECUTIONS))
    return [*results, Finding("files", sections.DATA_QUALITY, {"files": files_of(logs.ledger)})]


def with_runs(table: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Add each row's run, for links; if the table has turns, rows without one get no run, and `history` is dropped."""
    table = table.assign(run_id=table["history"].map(runs.set_index("history")["run_id"]))
    if "turn" not in table:
        return table
    return table.assign(run_id=table["run_id"].where(table["turn"].notna())).drop(columns="history")


def open_checks(checks: pd.DataFrame) -> pd.DataFrame:
    """Return the checks that did not pass or could not be computed."""
    selected = checks[checks["severity"].isin(("warning", "error", "critical")).to_numpy()]
    return numbered(selected[["position", "function_name", "name", "severity", "label", "score", "explanation"]])
