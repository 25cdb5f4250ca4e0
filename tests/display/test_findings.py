"""Findings are records: any name in them comes out whole, whatever characters it has."""

import pytest

from evalkit import compare
from evalkit._words import Notes, note
from evalkit.display import pair_text, show, text_of
from evalkit.display.words import headline_text
from evalkit.kinds import Finding, endings_finding
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
PAIR = {
    "model_a": "a", "model_b": "b", "n_tasks": 9, "mean_a": 0.9, "mean_b": 0.2, "estimate": 0.7, "low": 0.5,
    "high": 0.8, "p_adjusted": 0.01, "decided": False, "equivalent": False, "target": "new tasks", "tested": 3,
    "correction": "max-T", "margin": 0.1, "unit": "%", "warning": Notes(),
}  # fmt: skip
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
        *(Finding("pair", "s", {"row": {**PAIR, **sides}}) for sides in ({"model_a": name}, {"model_b": name})),
        Finding("pair", "s", {"row": PAIR | {"model_a": name, "decided": True}, "together": [name]}),
        Finding("pair", "s", {"row": PAIR | {"model_b": name, "equivalent": True}}),
        Finding("pair", "s", {"row": PAIR | {"model_b": name, "n_tasks": 0}}),
        Finding("pair", "s", {"row": PAIR | {"warning": note("unmeasured", model=name)}}),
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


@pytest.mark.parametrize(("n", "folded"), [(4, 0), (6, 2)])
def test_a_page_begins_with_four_findings_and_folds_the_others(n, folded, shown):
    show.show_findings([f"finding {i}" for i in range(n)])
    data = shown[-1][0]
    first, *rest = data["text/html"].split("<details>")
    assert first.count("<li>") == 4
    assert [one.count("<li>") for one in rest] == [folded] * bool(folded)
    assert len(data[show.FINDINGS]) == n


def test_an_unknown_code_is_an_error_and_not_an_empty_sentence():
    with pytest.raises(KeyError):
        text_of(Finding("nothing like that", "s"))


def test_the_text_of_a_pair_has_the_unit_of_its_values_and_the_number_of_its_sides():
    row = PAIR | {"decided": True, "mean_a": 39.25, "mean_b": -0.714, "estimate": 39.96, "low": 20.1, "high": 47.2}
    assert "39.25 against -0.71 on 9 tasks shared, difference 39.96 points [20.10, 47.20]" in pair_text(
        {**row, "unit": "points"}
    )
    assert pair_text(PAIR | {"decided": True}, "step", ["a"]).startswith(
        "a together are better than b on new steps like these"
    )
    behind = PAIR | {"estimate": -0.7, "low": -0.8, "high": -0.5, "mean_a": 0.2, "mean_b": 0.9, "decided": True}
    assert pair_text(behind).startswith(
        "b is better than a on new tasks like these: 90 % against 20 % on 9 tasks shared, "
    )
    assert "difference 70 points [50, 80], p = 0.01 after max-T correction for 3 pairs." in pair_text(behind)
