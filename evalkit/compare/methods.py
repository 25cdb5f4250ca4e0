"""Write the methods paragraph of a comparison, with references for the methods used."""

from collections.abc import Sequence
from typing import NamedTuple

from evalkit._text import counted_noun
from evalkit._version import __version__
from evalkit.compare.ranking import Leaderboard
from evalkit.kinds import judge_mark

REFERENCES = {
    "Agresti and Min 2005": "A. Agresti and Y. Min (2005), Simple improved confidence intervals for comparing matched "
    "proportions. Statistics in Medicine 24.",
    "Bell and McCaffrey 2002": "R. M. Bell and D. F. McCaffrey (2002), Bias reduction in standard errors for linear "
    "regression with multi-stage samples. Survey Methodology 28.",
    "Cameron et al. 2011": "A. C. Cameron, J. B. Gelbach and D. L. Miller (2011), Robust inference with multiway "
    "clustering. Journal of Business & Economic Statistics 29.",
    "Hall 1992": "P. Hall (1992), On the removal of skewness by transformation. Journal of the Royal Statistical "
    "Society, Series B 54.",
    "Korn and Graubard 1998": "E. L. Korn and B. I. Graubard (1998), Confidence intervals for proportions with small "
    "expected number of positive counts estimated from survey data. Survey Methodology 24.",
    "Lipták 1958": "T. Lipták (1958), On the combination of independent tests. Magyar Tudományos Akadémia Matematikai "
    "Kutató Intézetének Közleményei 3.",
    "McNemar 1947": "Q. McNemar (1947), Note on the sampling error of the difference between correlated proportions or "
    "percentages. Psychometrika 12.",
    "Mogstad et al. 2024": "M. Mogstad, J. P. Romano, A. M. Shaikh and D. Wilhelm (2024), Inference for ranks with "
    "applications to mobility across neighbourhoods and academic achievement across countries. Review of Economic "
    "Studies 91.",
    "Romano and Wolf 2005": "J. P. Romano and M. Wolf (2005), Exact and approximate stepdown methods for multiple "
    "hypothesis testing. Journal of the American Statistical Association 100.",
    "Suissa and Shuster 1991": "S. Suissa and J. J. Shuster (1991), The 2 × 2 matched-pairs trial: exact unconditional "
    "design and analysis. Biometrics 47.",
    "Wilson 1927": "E. B. Wilson (1927), Probable inference, the law of succession, and statistical inference. Journal "
    "of the American Statistical Association 22.",
}


class Sentence(NamedTuple):
    """A sentence, with citations that replace ``{0}``, ``{1}``, … in its text."""

    text: str
    citations: Sequence[str] = ()  # keys of `REFERENCES`


_WILSON = Sentence(
    "Intervals are Wilson intervals ({0}) on the effective sample size under clustering by task ({1}), adjusted for "
    "few clusters.",
    ("Wilson 1927", "Korn and Graubard 1998"),
)
_STUDENT = Sentence("Intervals are Student's t over tasks, transformed for skewness ({0}).", ("Hall 1992",))
INTERVALS = {  # by method of an interval; the paragraph only names other methods
    "wilson": _WILSON,
    "wilson, effective n": _WILSON,
    "cluster wilson": _WILSON,
    "cluster t": _STUDENT,
    "cluster t, Hall's correction": _STUDENT,
    "t": _STUDENT,
    "t, Hall's correction": _STUDENT,
}


def methods_text(board: Leaderboard) -> str:
    """Write the methods paragraph of a comparison, to paste into a paper.

    Parameters
    ----------
    board : Leaderboard
        Result of `leaderboard`.

    Returns
    -------
    str
        A paragraph that describes the methods used for this comparison, and a line for each reference; empty if no
        model has an estimate.

    Examples
    --------
    >>> compare.methods_text(compare.leaderboard(runs)).startswith("We report success rates with 95 % confidence")
    True
    """
    if board.table["estimate"].isna().all():
        return ""
    outcomes = board.outcomes
    table = outcomes.table
    what = "success rates" if outcomes.kind == "proportion" else "mean scores"
    mark = judge_mark([outcomes.judged])
    has_intervals = board.table["low"].notna().any()
    intervals = " with 95 % confidence intervals for new tasks of the same kind" if has_intervals else ""
    sentences = [Sentence(f"We report {what}{mark}{intervals}.")]
    sentences.append(Sentence("Tasks have equal weight, regardless of their number of runs."))
    for method in board.table.loc[board.table["low"].notna(), "method"].unique():
        sentence = INTERVALS.get(method, Sentence(f"Intervals are by the method {method}."))
        if sentence not in sentences:
            sentences.append(sentence)
    unmeasured = table.loc[table["outcome"] == "not measured", "value"]
    if len(unmeasured):
        counted = "excluded" if unmeasured.isna().all() else "counted as failures"
        runs = f"{len(unmeasured):,} of {counted_noun(len(table), 'run')}"
        sentences.append(Sentence(f"{runs} were not measured and are {counted}."))
    if table["condition"].nunique() > 1:
        sentences.append(Sentence("We compared models only under equal conditions."))
    pairs = board.pairs
    has_test_of_counts = pairs["method"].str.contains("McNemar").any()
    if len(pairs):
        sentences.append(Sentence("We compared each pair of models on the tasks that both ran."))
    if has_test_of_counts:
        text = (
            "Pairs with one run per task and binary outcomes were tested by McNemar's test ({0}) in its exact "
            "unconditional form ({1}), with intervals by Agresti and Min ({2})."
        )
        sentences.append(Sentence(text, ("McNemar 1947", "Suissa and Shuster 1991", "Agresti and Min 2005")))
    if pairs["method"].str.contains("paired t").any():
        tested = "Other pairs" if has_test_of_counts else "Pairs"
        text = f"{tested} were tested by a paired t test over tasks, transformed for skewness ({{0}})."
        sentences.append(Sentence(text, ("Hall 1992",)))
    if pairs["n_unshared"].gt(0).any():
        text = (
            "Tasks that only one model of a pair ran were compared by Welch's t test and combined with the paired test "
            "by weighted normal quantiles ({0})."
        )
        sentences.append(Sentence(text, ("Lipták 1958",)))
    if len(pairs) > 1:
        text = f"p values are corrected for all {len(pairs):,} pairs by the step-down max-T procedure ({{0}})."
        sentences.append(Sentence(text, ("Romano and Wolf 2005",)))
        sentences.append(Sentence("Intervals of ranks follow Mogstad et al. ({0}).", ("Mogstad et al. 2024",)))
    if not table["family"].equals(table["task"]):
        text = "Variances are cluster-robust over families of tasks ({0})."
        sentences.append(Sentence(text, ("Bell and McCaffrey 2002",)))
    if table.groupby(["model_name", "seed"])["task"].nunique().gt(1).any():
        text = "Variances include the variation between seeds by two-way clustering ({0})."
        sentences.append(Sentence(text, ("Cameron et al. 2011",)))
    if board.is_adjusted:
        text = (
            "Because models ran different tasks, we also report rates adjusted for tasks, from a model with an effect "
            "of each model and of each task."
        )
        sentences.append(Sentence(text))
    sentences.append(Sentence(f"We used evalkit {__version__}."))
    paragraph = " ".join(sentence.text.format(*sentence.citations) for sentence in sentences)
    cited = {citation for sentence in sentences for citation in sentence.citations}
    return "\n".join([paragraph, *(full for citation, full in REFERENCES.items() if citation in cited)])
