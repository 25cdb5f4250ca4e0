"""Findings are records: any name in them comes out whole, whatever characters it has."""

import pytest

from evalkit import compare
from evalkit.display import show, text_of
from evalkit.display.words import FINDINGS, HEADLINES, headline_text
from evalkit.kinds import Finding, data_finding, endings_finding
from evalkit.mindcraft import analysis as mindcraft
from evalkit.steps.show import findings as of_steps
from tests.compare.runs import runs_of

ODD = [
    "GPT-5 (high)",
    "best: a (b)",
    'x; y: "z"',
    "<b>&amp;</b>",
    "{model} {0} %s",
    "a\nb\tc",
    "all others",
    "=1+1",
    ")",
]
RATE = {"estimate": 0.5, "low": 0.4, "high": 0.6, "n": 10, "n_clusters": 5}
LEADS = {"code": "leads", "behind": ["b"], "open": ["c"], "few": True, **RATE}
RANKED = {"n_models": 2, "title": "success rate", "is_share": True, "unit": "", "more": False, "rates": []}


def cases(name: str) -> list[Finding]:
    """One finding of each code that has a name in it."""
    headlines = [
        {"code": "best", "model": name, "what": "success rate", "basis": "", **RATE},
        {"code": "one_model", "model": name, "what": "success rate", **RATE},
        {"code": "tie", "models": ["b", name]},
        {"code": "cycle", "models": [name, "b", name]},
        {"code": "apart", "models": ["b", name], "basis": "none", "rates": {}, "is_share": True, "unit": ""},
        LEADS | {"model": name},
        LEADS | {"model": "a", "open": [name]},
    ]
    trend = {"model_name": name, "p_value": 0.01, "p_holm": 0.01, "direction": "falls", "n": 9, "n_clusters": 3}
    return [
        *(Finding("ranking", "s", {**RANKED, "headline": headline}) for headline in headlines),
        Finding(
            "rate", "s", {"headline": {"code": "rate", "what": f"the rate of {name}", "n_not_measured": 1, **RATE}}
        ),
        Finding("no_other", "s", {"model": name}),
        Finding("trends", "s", {"trends": [trend], "models": []}),
        Finding("trends", "s", {"trends": [], "models": ["b", name]}),
        Finding("reach", "s", {"model": name, "tasks": {0: 2, 1: 3}, "gap": 0.5}),
        Finding("lowest", "s", {"row": {**RATE, "history": name}}),
        Finding("failures", "s", {"n": 3, "ways": 1, "first": [(name, 3)]}),
        endings_finding({name: 3}, 9, "run", "s"),
        Finding("own", "s", {"model": name}, template="{model} is new."),
    ]


@pytest.mark.parametrize("name", ODD)
def test_any_name_comes_out_whole_in_every_finding(name):
    for finding in cases(name):
        assert name in text_of(finding), finding


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("other", ["b", "GPT-5 (low)"])
def test_a_best_model_of_any_name_is_named_whole_from_runs_to_page(name, other, shown):
    runs = runs_of([(model, str(i), model == name) for model in (name, other) for i in range(30)])
    board = compare.leaderboard(runs)
    assert compare.headline(board)["model"] == name
    found = compare.findings(board)
    assert text_of(found[0]).startswith(f"{name} is shown to be the best of 2 models: success rate ")
    assert text_of(found[1]).startswith(f"{name} is better than {other} ")
    assert headline_text(compare.headline(board)) == f"best: {name} (success rate)"
    show.show_findings(found)
    page = shown[-1][0]["text/html"]
    assert "<b>" not in page
    assert show.escape(name) in page


def test_every_code_is_made_into_text_by_somebody():
    made = {finding.code for finding in cases("a")} | {"data", "files", "alone", "nearest_pair", "pair", "caveats"}
    assert FINDINGS.keys() - made == {"points", "steps", "no_steps", "cut"}  # of numbers only: see each kind's tests
    assert HEADLINES.keys() == {
        "best", "one_model", "tie", "cycle", "apart", "leads", "unnamed", "nothing", "rate", "no_rate", "no_runs",
    }  # fmt: skip
    assert all(callable(function) for function in (data_finding, mindcraft.findings, of_steps))
