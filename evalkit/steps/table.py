"""Tables of histories: the records of a file, and the columns of all frames, with types and units."""

from evalkit.io import Column
from evalkit.io.frames import Dtype
from evalkit.kinds import run_columns
from evalkit.steps.format import VERDICTS

FLAGS = {
    "no_steps": "the history has no records",
    "silent_failures": "steps report success although their results show failures",
    "critical_failures": "errors after which no later step can work",
    "loops": "the same call failed repeatedly",
    "cut_results": "stored results were cut; the rest is unknown",
    "unknown_outcomes": "records do not show whether their steps succeeded",
    "duplicate": "another history contains the same executions; rates exclude this one",
}

_THREAD = Column("thread", "name", "thread of a checkpoint; empty for other files")
RECORDS = {
    "histories": (_THREAD, Column("plan", "str", "the plan as JSON text; missing if not stored")),
    "steps": (_THREAD, Column("entry", "str", "the step's record as JSON text: results have no type in common")),
}

_RUN = Column("run_id", "str", "the history, as in runs; missing for records that were not read from a file")
_HISTORY = Column("history", "name", "label of the history, unique among the loaded histories")
_POSITION = Column("position", "int", "position of the record in its history, from 0")
_TURN = Column("turn", "int", "number of the turn that shows its result, from 1, as in the frame of turns and on pages")
_FUNCTION = Column("function_name", "name", "function of the step")
_CELL_TYPE = Column("cell_type", "name", "cell type of the step")
_COPY_OF = Column("copy_of", "name", "history with the same executions, which counts in place of this one")

RUNS = run_columns(
    _THREAD,
    _HISTORY,
    _COPY_OF,
    Column("judged", "int", "judged steps: all except skipped and unknown ones"),
    Column("reported", "int", "judged steps that report success"),
    Column("confirmed", "int", "judged steps that succeeded, without silent failures"),
    Column("silent_failures", "int", "steps that report success although their result shows a failure"),
    Column("failures", "int", "steps that failed, including critical failures"),
    Column("loops", "int", "series of failures of the same call"),
    Column("cut", "int", "stored results that are cut"),
    score="share of judged steps that are confirmed",
)
_SOURCE = Column("source", "str", "path of the history's file")
_STEP_INDEX = Column("step_index", "int?", "index of the step; counted if not recorded, and kept by retries")
IDS = (_RUN, _HISTORY, _COPY_OF, _SOURCE, _THREAD, _POSITION, _TURN, _STEP_INDEX, _FUNCTION)
STEPS = (
    *IDS,
    Column("attempt", "int", "number of the attempt in a series of failures, from 1"),
    Column("step_type", "name", "as planned: analysis, visualization, …"),
    _CELL_TYPE,
    Column("success", "bool?", "as recorded; missing if not recorded"),
    Column("verdict", "str", ", ".join(VERDICTS)),
    Column("silent_failure", "bool", "the step reported success, but the result shows a failure"),
    Column("silent_failure_reason", "str", "what the result says"),
    Column("critical_failure", "bool", "an error after which no later step can work"),
    Column("error_category", "str", "system_error or analysis_error; missing for successes"),
    Column("error_type", "str", "class of the error, if recorded"),
    Column("error", "str", "message of the error"),
    Column("result_type", "str", "structured, visualization, text, skipped, validation"),
    Column("truncated", "bool", "the stored text is cut, or has exactly the length of a cut text"),
    Column("stored_length", "int?", "length of the stored text or HTML", "characters"),
    Column("original_length", "int?", "its length before it was cut; missing if unknown", "characters"),
    Column("data_completeness", "str", "complete, partial, limited (cut) or none (an error, a status, nothing)"),
    Column("discovery_status", "str", "how the discovery of cell types ended (process_cells)"),
    Column("total_significant", "int?", "significant terms over all methods, for orientation (enrichment)"),
    Column("summary", "str", "summary of the result in one line; missing if the step failed with an error"),
    Column("result_summary", "str", "the summary that was stored"),
    Column("description", "str", "description of the planned step"),
    Column("skip_reason", "str", "reason for skipping the step"),
    Column("parameters", "str", "parameters of the call, as JSON"),
    Column("timestamp", "str", "as recorded"),
    Column("shape", "str", "shape of the record: A, B or C"),
)
CHECKS = (
    *IDS,
    Column("name", "str", "name of the check"),
    Column("score", "float", "from 0 to 1; NaN if it can't be computed", "share"),
    Column("label", "str", "the judgement in a word"),
    Column("explanation", "str", "why"),
    Column("severity", "str", "info, warning, error or critical"),
)
RESULTS = (
    *IDS,
    _CELL_TYPE,
    Column("quantity", "str", "significant terms, p-value, significant genes, gene, cell types, clusters, cells, …"),
    Column("method", "name", "of an enrichment: GO, KEGG, REACTOME, GSEA"),
    Column("category", "name", "condition of genes, category of cells, query of a search"),
    Column("term", "name", "term, gene or cell type; missing if the value counts all of them"),
    Column("value", "float", "the number or p value; NaN if unknown, and for names"),
    Column("parameters", "str", "parameters of the call, as JSON"),
)
TABLES = {"runs": RUNS, "steps": STEPS, "checks": CHECKS, "results": RESULTS}


def _columns(*first: Column, **others: Dtype) -> tuple[Column, ...]:
    """Return the columns of a derived frame: `first` as they are, then `others` by name and dtype."""
    return (*first, *(Column(name, dtype, "") for name, dtype in others.items()))


COVERAGE = _columns(
    _RUN._replace(meaning="the history with the step; missing if the analysis was not run"),
    _HISTORY,
    _CELL_TYPE,
    analysis="str",
    status="str",
    steps="int",
    position="int?",
    turn="int?",
)
ADHERENCE = _columns(_HISTORY, _POSITION, _FUNCTION, status="str", attempts="int")
# share of steps that succeeded, as reported and without silent failures
_RATES: dict[str, Dtype] = {
    f"{which}_{bound}": "float" for which in ("reported", "confirmed") for bound in ("estimate", "low", "high")
}
_VERDICTS: dict[str, Dtype] = dict.fromkeys(VERDICTS, "int")
OVERVIEW = _columns(
    _RUN._replace(meaning="the history, as in runs; missing for all histories together"),
    _HISTORY,
    records="int",
    n="int",  # judged steps: all except skipped and unknown ones
    **_RATES,
    **_VERDICTS,
    loops="int",
    cut="int",
    warning="str",  # a doubt about the intervals
)
FAILURE_KINDS = _columns(
    verdict="str",
    steps="int",
    histories="int",
    kind="str",  # class of the error, or its message without names and numbers
    message="str",  # message of the first failure
    functions="object",
    error_category="str",
)

# titles of columns in tables, where the name of the column is not plain English
LABELS = {
    "confirmed_estimate": "confirmed success",
    "cut": "results cut",
    "error_category": "class of error",
    "function_name": "function",
    "reported_estimate": "reported success",
    "result_type": "kind of result",
    "truncated": "result cut",
}
