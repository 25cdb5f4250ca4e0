"""Words made from codes and values: intervals, alt texts, notes and findings, with any name in them whole."""

import copy
import math
import pickle

import numpy as np
import pandas as pd
import pytest

from evalkit._notes import Notes, left_out, note
from evalkit._text import format_interval
from evalkit.display import Look, finding_text
from evalkit.display.plots import describe_curves, describe_estimates, describe_shares, describe_timeline
from evalkit.display.words import abstract_text
from evalkit.failures.words import mode_of_models
from evalkit.io.write import write_frame
from evalkit.kinds import Finding
from evalkit.mindcraft import words as mindcraft
from evalkit.stats import estimate_by
from evalkit.steps import words as steps
from tests.display.gallery import KINDS

NAN = math.nan
NOTES = note("none", "no scores") + note("x", "x")
ODD = ["GPT-5 (high)", 'x; y: "z"', "<b>&amp;</b>", "{model} {0} %s", "a\nb\tc", "all others", ")"]
ODD += [f"org/{'deep-' * 9}7b"]  # and a long one
RATE = {"estimate": 0.5, "low": 0.4, "high": 0.6, "n": 10, "n_tasks": 5}
LEADS = {"code": "leads", "what": "success rate", "basis": "", "behind": ["b"], "open": ["c"], "few": True, **RATE}
PAIR = {
    "model_a": "a", "model_b": "b", "n_tasks": 9, "n_unshared": 0, "mean_a": 0.9, "mean_b": 0.2, "estimate": 0.7,
    "low": 0.5, "high": 0.8, "p_value": 0.01, "p_adjusted": 0.01, "claim_at": 0.05, "decided": False,
    "equivalent": False, "target": "new tasks", "tested": 3, "correction": "max-T", "margin": 0.1, "unit": "%",
    "warning": Notes(),
}  # fmt: skip
RANKED = {"n_models": 2, "what": "success rate", "is_share": True, "unit": "", "rates": []}


@pytest.mark.parametrize(
    ("values", "options", "text"),
    [
        ((0.63, 0.52, 0.73), {}, "63 % [52, 73]"),
        ((0.0, 0.0, 0.04), {}, "0 % [0, 4]"),
        ((0.5436, 0.5428, 0.5444), {}, "54.4 % [54.3, 54.4]"),
        ((NAN, 0.1, 0.2), {}, "–"),
        ((pd.NA, pd.NA, pd.NA), {}, "–"),
        ((1.25, 0.8, 1.7), {"percent": False}, "1.25 [0.80, 1.70]"),
        ((np.float64(2), np.float64(1), np.int64(3)), {"percent": False, "digits": 1}, "2.0 [1.0, 3.0]"),
        ((0.2, -0.001, 0.3), {"unit": "points"}, "20 points [0, 30]"),
        ((0.625 - 1e-16, 0.1, 0.9), {}, "62 % [10, 90]"),
        ((0.175 + 1e-16, 0.275 - 1e-16, 0.9), {}, "18 % [28, 90]"),  # as 0.175 and 0.275
        ((17.5 - 4e-15, None, None), {"percent": False, "digits": 0}, "18"),
        ((math.inf, 1, 2), {"percent": False}, "inf [1.00, 2.00]"),
    ],
)
def test_an_estimate_is_written_with_its_interval(values, options, text):
    assert format_interval(*values, **options) == text


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({"estimate": 0.025, "low": 0.011, "high": 0.06, "n": 1234}, "2.5 % [1.1, 6.0] (n = 1,234)"),
        ({"estimate": 0.5}, "50 %"),
        ({"estimate": NAN, "n": 3}, "no estimate (n = 3)"),
        ({"estimate": pd.NA, "n": 3, "reason": "too few <b>\x1b"}, "too few <b>\ufffd (n = 3)"),
        ({"estimate": NAN, "n": 0, "n_not_measured": 3, "warning": NOTES}, "no scores (n = 3)"),
        ({"estimate": 0.5, "n": 2, "n_not_measured": 3, "warning": NOTES}, "50 % (n = 2)"),
    ],
)
def test_a_value_is_said_with_interval_and_n_or_the_reason_why_it_is_missing(row, text):
    assert describe_estimates(pd.DataFrame([row])) == f"{text}."


@pytest.mark.parametrize(("value", "text"), [(None, "unknown"), (np.nan, "unknown"), (2.0, "2"), ("a\nb", "a b")])
def test_groups_are_named_in_one_plain_line(value, text):
    assert describe_estimates(pd.DataFrame({"group": [value], "estimate": 0.5}), "group") == f"{text}: 50 %."


def test_alt_texts_say_what_the_pictures_show():
    t = pd.DataFrame({"item": ["i", "j", "k"], "side": ["a", None, "a"], "estimate": [0, 0.5, 1], "n": [5, 2, 0]})
    assert describe_estimates(t, "item", "side") == "i, a: 0 % (n = 5); j, unknown: 50 % (n = 2)."
    assert describe_estimates(t.iloc[:0], "item") == "Nothing to show."
    many = pd.concat([t] * 20).assign(item=range(60), n=5)
    ends = "Lowest: 0: 0 % (n = 5); highest: 59: 100 % (n = 5)."
    assert describe_estimates(many, "item") == f"60 groups, 60 of them with an estimate. {ends}"
    counts = pd.DataFrame({"model": ["a", "b"], "ok": [3, 0], "bad": [1, 0]})
    assert describe_shares(counts, "model", {"ok": KINDS["+"], "bad": Look("")}) == "a: 3 gains points, 1 bad of 4."
    for places, said in ((6, 6), (7, 2), (40, 2)):  # of many places, the ends
        curve = pd.DataFrame({"model": "a", "turn": range(places), "estimate": np.linspace(0, 1, places), "n": 3})
        text = describe_curves(curve, "turn", "model")
        assert text.startswith("a: 0 % (n = 3) at turn 0, ")
        assert text.endswith(f"100 % (n = 3) at turn {places - 1}.")
        assert text.count("turn") == said
    for amount, shown in ((1.3639774999999998, "1.36"), (0.00042151666666666646, "0.000422"), (74520.5, "74,520")):
        point = pd.DataFrame({"model": ["a"], "cost": [amount], "estimate": [0.5], "n": [3]})
        assert describe_curves(point, "cost", "model") == f"a: 50 % (n = 3) at cost {shown}."
    events = pd.DataFrame({"run": ["a", "a", "b"], "kind": ["+", "+", "-"]})
    assert describe_timeline(events, "run", "kind", KINDS) == "a: 2 gains points; b: 1 loses points."
    assert describe_timeline(many.assign(kind="+"), "item", "kind", KINDS) == "all: 60 gains points."


def test_notes_are_asked_for_codes_and_say_their_text():
    notes = note("one_value") + left_out(2, "row") + note("one_value")
    assert [code in notes for code in ("left_out", "no_values")] == [True, False]
    assert str(notes) == "a single value has no interval; 2 rows left out as missing"
    assert str(notes.without("one_value")) == "2 rows left out as missing"
    assert str(notes.worded({"left_out": "left out: {count} aborted"})).endswith("; left out: 2 aborted")
    assert (bool(left_out(0, "row")), Notes() + Notes(), str(Notes())) == (False, Notes(), "")
    hostile = 'a; {b} (c): "d" <e>\n%s'  # never read as a template, nor split
    assert str(note("unmeasured", model=hostile)).count(hostile) == 1


def test_results_with_notes_survive_pickling_copying_and_files(tmp_path):
    table = estimate_by(pd.DataFrame({"m": ["a", "b"], "x": [1.0, np.nan]}), "m", "x")
    for again in (pickle.loads(pickle.dumps(table)), copy.deepcopy(table)):
        pd.testing.assert_frame_equal(again, table)
        assert again["warning"].tolist() == table["warning"].tolist()
    for suffix in ("csv", "json", "parquet"):
        write_frame(table, str(tmp_path / f"t.{suffix}"))
        texts = ["fewer than 15 values: a rough interval", "no values; 1 value left out as missing"]
        assert getattr(pd, f"read_{suffix}")(tmp_path / f"t.{suffix}")["warning"].tolist() == texts


def findings(name: str) -> list[Finding]:
    """One finding of each code that has a name in it."""
    headlines = [
        {"code": "best", "model": name, "what": "success rate", "basis": "", **RATE},
        {"code": "one_model", "model": name, "what": "success rate", **RATE},
        {"code": "tie", "models": ["b", name]},
        {"code": "cycle", "models": [name, "b", name]},
        {"code": "apart", "models": ["b", name], "n_sets": 2, "basis": "none"},
        LEADS | {"model": name},
        LEADS | {"model": "a", "open": [name]},
    ]
    mode = {"mode": "gives up", "rows": [{"runs": 2, "n": 3, "model_name": name}]}
    trend = {"model_name": name, "p_value": 0.01, "p_holm": 0.01, "direction": "falls", "n": 9, "n_tasks": 3}
    rate = {"code": "rate", "what": f"the rate of {name}", "n_not_measured": 1, **RATE}
    return [
        *(Finding("ranking", "s", {**RANKED, "headline": headline}) for headline in headlines),
        Finding("rate", "s", {"headline": rate}, template=mindcraft.rate),
        Finding("mode", "s", mode, template=mode_of_models),
        Finding("no_other", "s", {"model": name}, template=mindcraft.no_other),
        Finding("trend", "s", {"row": trend}, template=mindcraft.trend),
        Finding("no_trend", "s", {"models": ["b", name], "is_tested": True}, template=mindcraft.no_trend),
        Finding("reach", "s", {"model": name, "tasks": {0: 2, 1: 3}, "gap": 0.5}, template=mindcraft.reach),
        Finding("failures", "s", {"n": 3, "ways": 1, "first": [(name, 3)]}, template=steps.failures),
        Finding("endings", "s", {"endings": {"x": 3}, "labels": {"x": name}, "n": 9, "noun": "run"}),
        *(Finding("pair", "s", {"row": {**PAIR, **sides}}) for sides in ({"model_a": name}, {"model_b": name})),
        Finding("pair", "s", {"row": PAIR | {"model_a": name, "decided": True}}),
        Finding("pair", "s", {"row": PAIR | {"model_b": name, "equivalent": True}}),
        Finding("pair", "s", {"row": PAIR | {"model_b": name, "n_tasks": 0}}),
        Finding("pair", "s", {"row": PAIR | {"p_adjusted": np.nan, "warning": note("unmeasured", model=name)}}),
        Finding("own", "s", {"model": name}, template="{model} is new."),
    ]


@pytest.mark.parametrize(
    ("endings", "text"),
    [
        ({"failure": 2}, "2 of 9 runs did not succeed."),
        ({"CRASH": 2}, "2 of 9 runs did not succeed: failure (2)."),  # its label is no code
        ({"failure": 2, "LATE": 3, "CRASH": 0}, "5 of 9 runs did not succeed: too late (3) and no success (2)."),
        ({"LATE": 1, "CRASH": 1}, "2 of 9 runs did not succeed: failure (1) and too late (1)."),
        ({}, "None of 9 runs failed."),
    ],
)
def test_endings_are_named_by_their_labels_unless_all_are_plain_failures(endings, text):
    labels = {"failure": "no success", "CRASH": "failure", "LATE": "too late"}
    values = {"endings": endings, "labels": labels, "n": 9, "noun": "run"}
    assert finding_text(Finding("endings", "s", values)) == text


@pytest.mark.parametrize("name", ODD)
def test_any_name_comes_out_whole_in_every_finding(name):
    for finding in findings(name):
        assert name in finding_text(finding), finding
    with pytest.raises(KeyError):  # and no sentence for an unknown code
        finding_text(Finding("nothing like that", "s"))


def test_the_abstract_sums_up_the_answer_the_difference_the_reasons_and_what_a_run_takes():
    others = [
        Finding("reasons", "", template="Most runs failed at the network."),
        Finding("files", "", template="All files were used."),
        Finding("nearest_pair", "", {"decided": 0, "pairs": 1, "row": PAIR}),
    ]
    answer = Finding("own", "", template="oak is the best.")
    took = {"cost (US dollars) per run": 0.25, "tokens in per run": 12345.6, "duration (seconds) per run": 1.0}
    first = {"model_name": "oak", "estimate": 0.9, **took, "turns per run": NAN}
    assert abstract_text(answer, others, first) == (
        "oak is the best. Not decided: a (90 %) against b (20 %) on 9 tasks, difference 70 points [50, 80], p = 0.01. "
        "Most runs failed at the network. "
        "A run of oak takes 1 second, 12,346 input tokens and 0.25 US dollars on average."
    )
    for unfit in ({"estimate": NAN}, {"model_name": "unknown"}):
        assert abstract_text(answer, [], first | unfit) == "oak is the best."
    assert abstract_text(answer, [], {}) == "oak is the best."
