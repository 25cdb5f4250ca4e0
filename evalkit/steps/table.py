"""Tables of histories: the records of a file, and the columns of all frames, with types and units."""

from evalkit.io import Column
from evalkit.kinds import run_columns
from evalkit.steps.format import VERDICTS

FLAGS = {
    "no_steps": "the history has no records",
    "silent_failures": "steps report success, while their results say otherwise",
    "critical_failures": "errors after which nothing that follows can work",
    "loops": "the same call failed again and again",
    "cut_results": "stored results are cut; what was cut away is unknown",
    "unknown_outcomes": "records do not say whether their steps succeeded",
}

_THREAD = Column("thread", "name", "thread of a checkpoint; empty for other files")
RECORDS = {
    "histories": (_THREAD, Column("plan", "str", "the plan as JSON text; missing where none was kept")),
    "steps": (_THREAD, Column("entry", "str", "the step's record as JSON text: results have no type in common")),
}

_HISTORY = Column("history", "name", "label that tells the history apart from those loaded with it")
_POSITION = Column("position", "int", "place of the record in its history, from 0")
_FUNCTION = Column("function_name", "name", "function of the step")
_CELL_TYPE = Column("cell_type", "name", "cell type the step is about")
_STEP_INDEX = Column("step_index", "int?", "index of the step; if not recorded, counted: a retry keeps its step's")
_LOOPS = Column("loops", "int", "runs of failures of one call")
_CUT = Column("cut", "int", "stored results that are cut")

RUNS = run_columns(
    _THREAD,
    _HISTORY,
    Column("records", "int", "records in it"),
    Column("judged", "int", "steps that shares rest on: all but skipped and unknown ones"),
    Column("reported", "int", "of these, steps that report success"),
    Column("confirmed", "int", "of these, steps that succeeded, without silent failures"),
    Column("silent_failures", "int", "steps that report success, while the result says otherwise"),
    Column("failures", "int", "steps that failed, critical failures among them"),
    _LOOPS,
    _CUT,
    score="share of judged steps that are confirmed",
)
_SOURCE = Column("source", "str", "path of the history's file")
IDS = (_HISTORY, _SOURCE, _THREAD, _POSITION, _STEP_INDEX, _FUNCTION)
STEPS = (
    *IDS,
    Column("attempt", "int", "how often the call was made in a row, each time before having failed, from 1"),
    Column("step_type", "name", "as planned: analysis, visualization, …"),
    _CELL_TYPE,
    Column("success", "bool?", "as recorded; missing where the record does not say"),
    Column("verdict", "str", ", ".join(VERDICTS)),
    Column("silent_failure", "bool", "success was reported, but the result says otherwise"),
    Column("silent_failure_reason", "str", "what the result says"),
    Column("critical_failure", "bool", "an error after which nothing that follows can work"),
    Column("error_category", "str", "system_error or analysis_error, of failures"),
    Column("error_type", "str", "class of the error, where it was recorded"),
    Column("error", "str", "message of the error"),
    Column("result_type", "str", "structured, visualization, text, skipped, validation"),
    Column("truncated", "bool", "the stored text is cut, or of exactly the length at which it would be cut"),
    Column("stored_length", "int?", "length of the stored text or HTML", "characters"),
    Column("original_length", "int?", "its length before it was cut; missing where that is not known", "characters"),
    Column("data_completeness", "str", "complete, partial, limited (cut) or none (an error, a status, nothing)"),
    Column("discovery_status", "str", "how the discovery of cell types ended (process_cells)"),
    Column("total_significant", "int?", "significant terms over all methods, for orientation (enrichment)"),
    Column("summary", "str", "what a step that reports success did, in a line, as its result says"),
    Column("result_summary", "str", "the summary that was stored"),
    Column("description", "str", "what the step was to do"),
    Column("skip_reason", "str", "why the step was skipped"),
    Column("parameters", "str", "parameters of the call, as JSON"),
    Column("timestamp", "str", "as recorded"),
    Column("shape", "str", "shape of the record: A, B or C"),
)
CHECKS = (
    *IDS,
    Column("name", "str", "name of the check"),
    Column("score", "float", "from 0 to 1; NaN where it can't be computed", "share"),
    Column("label", "str", "the judgement in a word"),
    Column("explanation", "str", "why"),
    Column("severity", "str", "info, warning, error or critical"),
)
TABLES = {"runs": RUNS, "steps": STEPS, "checks": CHECKS}

RECORD = (_HISTORY, _POSITION, _FUNCTION, _CELL_TYPE)  # ids of frames with one or several rows per record
ENRICHMENTS = (
    *RECORD,
    Column("method", "str", "enrichment method"),
    Column("total_significant", "int?", "significant terms; missing where the count was cut away"),
    Column("listed", "int", "terms listed"),
    Column("top_terms", "object", "first three of them, with p-values where known"),
)
ANNOTATIONS = (
    *RECORD,
    Column("status", "str", "how the discovery ended"),
    Column("discovered", "object", "cell types found"),
    Column("expected", "object", "cell types the plan expected"),
    Column("missing", "object", "expected, not found; empty where the list was cut"),
    Column("unexpected", "object", "found, not expected"),
    Column("partial", "bool", "the list was cut"),
)
PLOTS = (
    *RECORD,
    Column("type", "str", "html, multiple_plots, file_ref, image, text (a message in the plot's place) or none"),
    Column("plots", "int?", "number of plots"),
    Column("html_length", "int?", "length of the HTML; missing where it was cut or is in a file", "characters"),
    Column("path", "str", "file of a plot that was stored as a file"),
)
_STATUS = Column("status", "str", f"{', '.join(VERDICTS)}, not run")
COVERAGE = (
    _HISTORY,
    _CELL_TYPE,
    Column("analysis", "str", "function"),
    _STATUS,
    Column("steps", "int", "steps of this analysis on this cell type, attempts counted"),
    Column("position", "int?", "place of the first step that ended so, from 0"),
)
LOOPS = (
    _HISTORY,
    Column("position", "int", "place of the first failure, from 0"),
    Column("length", "int", "failures in a row"),
    _FUNCTION,
    Column("parameters", "object", "parameters of the call"),
    Column("error", "str", "the last error"),
)
ROUTING = (
    _HISTORY,
    _POSITION,
    _STEP_INDEX,
    _FUNCTION,
    Column("success", "bool?", "as recorded"),
    Column("critical_failure", "bool", "nothing that follows can work"),
    Column("attempts_at_step", "int", "times the step was tried without moving on"),
    Column("from_executor", "str", "where the executor's router leads"),
    Column("from_step_evaluator", "str", "where the evaluator's router leads"),
    Column("reached", "bool", "False where the router would have ended the run before"),
)
ADHERENCE = (
    _HISTORY,
    Column("position", "int", "place in the plan, from 0"),
    _FUNCTION,
    _STATUS,
    Column("attempts", "int", "records of this step"),
    Column("in_order", "bool?", "it ran after the planned steps before it; missing where it did not run"),
)
OVERVIEW = (
    _HISTORY,
    Column("records", "int", "records in it"),
    Column("n", "int", "steps the rates rest on: all but skipped and unknown ones"),
    *(
        Column(f"{which}_{bound}", "float", f"share of steps that succeeded, {meaning}: {bound}", "share")
        for which, meaning in (("reported", "as reported"), ("confirmed", "without silent failures"))
        for bound in ("estimate", "low", "high")
    ),
    *(Column(verdict, "int", f"steps with the verdict {verdict}") for verdict in VERDICTS),
    _LOOPS,
    _CUT,
    Column("warning", "str", "what is doubtful about the intervals"),
)
FAILURE_KINDS = (
    Column("verdict", "str", "failure, critical failure or silent failure"),
    Column("steps", "int", "steps that ended so"),
    Column("histories", "int", "histories they stand in"),
    Column("kind", "str", "class of the error, or its message without names and numbers"),
    Column("message", "str", "message of the first"),
    Column("functions", "object", "functions of the steps"),
    Column("error_category", "str", "system_error or analysis_error"),
)
STORAGE = (
    *RECORD[:3],
    *(
        Column(f"{what}_{which}", "int", f"{what} in the {which} storage")
        for what in ("numbers", "items", "characters")
        for which in ("new", "old")
    ),
    Column("cut", "bool", "the old storage cuts this result"),
    Column("result_type", "str", "how the new storage keeps it"),
    _CELL_TYPE,
)
COMPARISON = (
    Column("change", "str", "same, fixed, broken, changed, only in a, only in b"),
    _FUNCTION,
    *(
        Column(f"{name}_{side}", dtype, f"{meaning} in {side}")
        for name, dtype, meaning in (
            ("verdict", "str", "how the step ended"),
            ("attempts", "int?", "attempts"),
            ("truncated", "bool?", "stored text is cut"),
            ("total_significant", "int?", "significant terms"),
        )
        for side in "ab"
    ),
    Column("run", "int", "1 for the first run of the call, 2 for the second"),
    _CELL_TYPE,
)


# What columns of frames and of estimates are called in tables, where their names are no words
LABELS = {
    "attempts_at_step": "attempts at this step",
    "change": "what changed",
    "characters_new": "characters, new storage",
    "characters_old": "characters, old storage",
    "confirmed_estimate": "confirmed success",
    "cut": "results cut",
    "error_category": "class of error",
    "from_executor": "after execution",
    "from_step_evaluator": "after evaluation",
    "function_name": "function",
    "items_new": "items, new storage",
    "items_old": "items, old storage",
    "numbers_new": "numbers, new storage",
    "numbers_old": "numbers, old storage",
    "reported_estimate": "reported success",
    "result_type": "kind of result",
    "total_significant": "significant terms",
    "truncated": "result cut",
}
