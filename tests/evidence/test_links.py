"""From findings and figures to runs: where each leads, how many there may be, and that hostile names stay texts."""

from urllib.parse import parse_qs, urlencode

import pandas as pd
import pytest
from matplotlib.colors import to_hex

from evalkit import Evidence, compare, show_findings
from evalkit.display import plots, show_figure
from evalkit.display.drawing import PALETTE, keep_looks
from evalkit.display.show import REPORT, SORTING, TABLE
from evalkit.display.tables import value_code
from evalkit.evidence import links
from evalkit.io.text import is_local_link
from evalkit.kinds import Example, Finding
from evalkit.mindcraft import analysis, figures, load
from tests.browser import needs_browser, open_browser
from tests.mindcraft.builders import write_all
from tests.reports.pages import HOSTILE, Visit

RUNS = {
    "alder/multiagent_cooking_1_bread_1_cake/Andy_0_0.json": 1,
    "alder/multiagent_crafting_bed_full_plan__depth_0/Andy_0_0.json": 0,
    "birch/multiagent_cooking_1_bread_1_cake/Andy_0_0.json": 0,
    "birch/multiagent_cooking_1_bread_1_cookie/Andy_0_0.json": None,
}


browser = pytest.fixture(scope="module")(open_browser)


@pytest.fixture
def shown(monkeypatch):
    """Be within a report; gives what is shown."""
    out = []
    monkeypatch.setenv(REPORT, "1")
    for module in ("evalkit.evidence.links", "evalkit.display.show"):
        monkeypatch.setattr(f"{module}.display", lambda data, **_: out.append(data))
    return out


@pytest.fixture
def logs(tmp_path):
    return load(write_all(tmp_path, RUNS))


def passed_on(shown):
    return {run[0] for data in shown for run in data.get(links.EVIDENCE, {}).get("runs", ())}


def rows_of(anchor="all-runs", **values):
    """Return the address of the rows with these values."""
    return f"#{anchor}?{urlencode({name: value_code(value) for name, value in values.items()})}"


def run_of(logs, model, n=0):
    return logs.runs.loc[logs.runs["model_name"] == model, "run_id"].iloc[n]


def test_a_group_of_one_run_leads_to_its_page_and_another_to_its_rows_in_the_table(logs, shown):
    rates = analysis.success_by(logs.runs, ["model_name", "task_type"])
    linked = Evidence(logs, logs.runs).link(rates)
    hrefs = dict(zip(zip(linked["model_name"], linked["task_type"], strict=True), linked["href"], strict=True))
    assert hrefs["birch", "cooking"] == rows_of(model_name="birch", task_type="cooking")
    single = logs.runs.set_index(["model_name", "task_type"]).loc[("alder", "cooking"), "run_id"]
    assert hrefs["alder", "cooking"] == f"../runs/{single}.html#at=decision"


def test_what_pages_are_made_from_is_passed_on_once_when_runs_are_shown(logs, shown):
    evidence = Evidence(logs, logs.runs)
    evidence.link(analysis.success_by(logs.runs, ["model_name", "task_type"]))
    evidence.cite([Finding("alone", "", {}, (Example("one", run_of(logs, "alder")),))])
    assert shown == []
    evidence.show()
    assert passed_on(shown) == set(logs.runs["run_id"])
    links.show_runs(logs, logs.runs[["task_id", "run_id"]], "Again")
    assert [len(data[links.EVIDENCE]["runs"]) for data in shown if links.EVIDENCE in data] == [len(logs.runs), 0]


def test_groups_whose_values_look_alike_in_a_table_have_links_of_their_own(logs, shown):
    runs = logs.runs.assign(temperature=[0.70001, 0.70002, 0.70002, None])
    evidence = Evidence(logs, runs, "temperature")
    first, second, unknown = evidence.link(pd.DataFrame({"temperature": [0.70001, 0.70002, None]}))["href"]
    assert first == f"../runs/{runs['run_id'].iloc[0]}.html#at=decision"
    assert second == rows_of(temperature=0.70002)
    assert unknown == f"../runs/{runs['run_id'].iloc[3]}.html#at=decision"
    evidence.show()
    assert shown[-1]["text/html"].count(">0.70002<") == 2


ALIKE = {  # values of a column; what a table shows of those in a group is the same, or nearly
    "invisible": ["alder", "alder\u200b", "alder\u200b\u200b", "\u202ealder"],
    "spaces": ["alder", "alder ", " alder", "alder\n", "alder\u00a0", "al der"],
    "case": ["alder", "Alder", "ALDER"],
    "types": ["1", 1, 1.5, "1.5", True, "yes", None, "–", "", 0.30000000000000004, 0.3],
    "long": ["x" * 300, "x" * 300 + " ", "x" * 299 + "y", "x"],
    "lists": [["a", "b"], ["a, b"], ["a"], ["b", "a "]],
}


ROWS_SHOWN = "[...document.querySelectorAll('tr[data-run]:not([hidden])')].map(row => row.dataset.run)"


@needs_browser
@pytest.mark.parametrize("values", ALIKE.values(), ids=ALIKE)
def test_a_link_shows_only_the_runs_with_its_value_however_alike_the_values_look(
    logs, shown, browser, tmp_path, values
):
    runs = pd.concat([logs.runs.iloc[[0]]] * (2 * len(values)), ignore_index=True)
    runs = runs.assign(run_id=[f"m-{n}" for n in range(len(runs))], variant=pd.Series(values * 2, dtype="object"))
    logs.runs = runs
    items = list(dict.fromkeys(item for value in values for item in (value if isinstance(value, list) else [value])))
    evidence = Evidence(logs, runs, "variant")
    groups = evidence.link(pd.DataFrame({"variant": pd.Series(items, dtype="object")}))
    assert groups["href"].str.startswith("#all-runs?variant=").all()
    assert groups["href"].is_unique
    evidence.show()
    page = tmp_path / "page.html"
    page.write_text(f"<!doctype html><title>x</title><body>{shown[-1]['text/html']}<script>{SORTING}</script>")
    with Visit(browser, page) as visit:
        visit.page.get_by_role("button", name="variant").click()  # sorts the rows
        for item, href in zip(items, groups["href"], strict=True):
            visit.page.evaluate("href => { location.hash = href; }", href)
            has_item = [item in value if isinstance(value, list) else value is item for value in runs["variant"]]
            visit.until(f"location.hash === '{href}' && document.querySelector('.chosen')")
            assert set(visit.page.evaluate(ROWS_SHOWN)) == set(runs.loc[has_item, "run_id"]), item
            said = visit.page.evaluate("document.querySelector('.chosen').firstChild.textContent")
            assert said.startswith(f"{sum(has_item)} of {len(runs)} rows have variant: "), item


@needs_browser
def test_an_address_with_an_unknown_code_shows_the_whole_table(logs, shown, browser, tmp_path):
    evidence = Evidence(logs, logs.runs)
    evidence.link(pd.DataFrame({"model_name": ["birch"]}))
    evidence.show()
    page = tmp_path / "page.html"
    page.write_text(f"<!doctype html><title>x</title><body>{shown[-1]['text/html']}<script>{SORTING}</script>")
    with Visit(browser, page) as visit:
        for query in ("model_name=birch", "score=0", "no_column=1"):
            visit.page.evaluate("query => { location.hash = `#all-runs?${query}`; }", query)
            assert visit.page.locator("tr[data-run]:not([hidden])").count() == len(logs.runs)
        assert visit.complaints == []


def test_rows_of_logged_models_have_links_where_something_else_is_compared(logs, shown):
    runs = logs.runs.assign(logged_model=logs.runs["model_name"], model_name="agent")
    linked = Evidence(logs, runs).link(runs[["logged_model"]].drop_duplicates())
    assert linked["href"].ne("").all()


def test_parts_of_a_bar_lead_to_their_own_runs_and_what_nobody_ran_leads_nowhere(logs, shown):
    counts = analysis.status_counts(logs.runs)
    (alder, birch) = Evidence(logs, logs.runs).link(counts, parts="status")["href"]
    assert alder["SUCCESS"].startswith("../runs/m-")
    assert birch["SUCCESS"] == ""
    figure = figures.statuses(counts.assign(href=[alder, birch]))
    show_figure(figure)
    assert shown[-1]["image/svg+xml"].count("<a href") == 4


def test_without_columns_a_table_is_linked_by_those_that_the_table_of_runs_has_too(logs, shown):
    evidence = Evidence(logs, logs.runs, "agent_count", dish="target_items")
    for columns, values, where in (
        ({"model_name": ["birch"], "n": [2], "score": [0.5]}, {}, {"model_name": "birch"}),
        ({"dish": ["bread"], "agent_count": [1.0]}, {}, {"agent_count": 1, "target_items": "bread"}),
        ({"model_name": ["birch"]}, {"task_type": "cooking"}, {"model_name": "birch", "task_type": "cooking"}),
    ):
        assert evidence.link(pd.DataFrame(columns), **values)["href"].tolist() == [rows_of(**where)]
    board = evidence.link_board(compare.leaderboard(logs.runs))
    assert rows_of(model_name="birch") in set(board.table["href"])


def test_figures_keep_their_looks_whatever_evidence_is_made(logs, shown):
    table = pd.DataFrame({"model_name": ["birch"], "estimate": [0.5], "n": [1]})
    Evidence(logs, logs.runs)
    (points,) = plots.estimates(table, "model_name").collections
    assert [to_hex(colour) for colour in points.get_facecolor()] == [PALETTE[0]]


def test_a_model_has_one_look_in_all_figures_once_looks_are_kept(logs, request):
    request.addfinalizer(keep_looks)
    keep_looks(logs.runs, logs.runs[logs.runs["model_name"] == "birch"])
    table = pd.DataFrame({"model_name": ["new", "birch"], "estimate": [0.1, 0.5], "n": [1, 1]})
    (points,) = plots.estimates(table, "model_name").collections
    assert [to_hex(colour) for colour in points.get_facecolor()] == [PALETTE[2], PALETTE[1]]


def test_findings_lead_to_runs_to_turns_and_to_two_runs_side_by_side(logs, shown):
    a, b = run_of(logs, "alder"), run_of(logs, "birch")
    examples = Example("one", a), Example("a turn", b, turn=7), Example("both", a, b)
    evidence = Evidence(logs, logs.runs)
    show_findings(evidence.cite([Finding("alone", "Section", {}, (one,)) for one in examples]))
    page = shown[-1]["text/html"]
    for label, href in (
        ("one", f"{a}.html#at=decision"),
        ("a turn", f"{b}.html#t7"),
        ("both", f"{a}--{b}.html#at=dec"),
    ):
        assert f'href="../runs/{href}' in page
        assert f">{label}</a>" in page
    evidence.show()
    assert [pair for data in shown for pair in data.get(links.EVIDENCE, {}).get("pairs", ())] == [(a, b)]


def test_outside_of_a_report_nothing_leads_anywhere(logs, shown, monkeypatch):
    monkeypatch.delenv(REPORT)
    evidence = Evidence(logs, logs.runs)
    assert "href" not in evidence.link(analysis.success_by(logs.runs))
    show_findings(evidence.cite([Finding("alone", "", {}, (Example("one", run_of(logs, "alder")),))]))
    assert "<a" not in shown[-1]["text/html"]
    assert len(shown) == 1


def test_hostile_names_stay_texts_in_addresses(logs, shown):
    bad = f"{''.join(HOSTILE)}&model_name=birch#x javascript:y \\ ü"
    runs = pd.concat([logs.runs, logs.runs]).assign(model_name=bad)
    evidence = Evidence(logs, runs)
    (href,) = evidence.link(pd.DataFrame({"model_name": [bad]}))["href"]
    assert is_local_link(href)
    assert not set("<>\"' ") & set(href)
    assert list(parse_qs(href.partition("?")[2])) == ["model_name"]
    ax = plots.estimates(pd.DataFrame({"model_name": [bad], "estimate": [0.5], "n": [1], "href": [href]}), "model_name")
    show_figure(ax)
    assert "<script" not in shown[-1]["image/svg+xml"]
    show_findings(evidence.cite([Finding("alone", "", {}, (Example(bad, run_of(logs, "alder")),))]))
    assert "<script" not in shown[-1]["text/html"]


def test_of_many_runs_points_and_groups_some_lead_to_pages_evenly_over_models_and_endings(logs, shown, monkeypatch):
    monkeypatch.setattr(links, "MOST_ROWS", 250)
    many = pd.concat([logs.runs.iloc[[0]]] * 300 + [logs.runs.iloc[[2]]] * 3, ignore_index=True)
    many = many.assign(run_id=[f"m-{i}" for i in range(len(many))])
    logs.runs = many
    Evidence(logs, many).show()
    table = next(data for data in shown if "all-runs" in data.get("text/html", ""))
    assert table["text/html"].count("<tr data-run") == 250
    assert table["text/html"].count('href="../runs/') == links.MOST_RUNS
    assert table["text/html"].count(">birch</") == 3
    assert "250 of 303 runs, chosen evenly by model and status. Links may" in shown[-1]["text/plain"]
    points = Evidence(logs, many).link(many[["run_id"]])
    assert (points["href"] != "").sum() == links.MOST_RUNS
    links.show_runs(logs, many[["task_id", "run_id"]].assign(turn=7), "More", name="more")
    assert "#t7" in shown[-2]["text/html"]
    assert [data[TABLE]["rows"] for data in shown if TABLE in data] == [303]
    assert shown[-1]["text/plain"] == links.LIMITED


def test_pairs_of_models_lead_to_the_tasks_they_decided_oppositely(logs, shown):
    opposite = compare.discordant(logs.runs)
    pairs = pd.DataFrame({"model_a": ["birch", "birch"], "model_b": ["alder", "cedar"]})
    hrefs = Evidence(logs, logs.runs).link_pairs(pairs, opposite)["href"].tolist()
    links.show_pairs(logs, opposite)
    assert all(f'data-values="{value_code(name)} {name}"' in shown[-1]["text/html"] for name in ("alder", "birch"))
    assert hrefs == [rows_of("all-pairs", model_a="alder", model_b="birch"), ""]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda logs: Evidence(logs, logs.runs, "dificulty"), "no column 'dificulty'; did you mean 'difficulty'"),
        (lambda logs: Evidence(logs, logs.runs).link(pd.DataFrame({"x": [1]})), "no column 'run_id'"),
        (lambda logs: links.show_pairs(logs, pd.DataFrame({"run_id": ["a"]})), "no column 'run_id_a'"),
        (lambda logs: links.show_runs(logs, pd.DataFrame({"task_id": ["a"]})), "no column 'run_id'"),
    ],
)
def test_a_column_that_is_not_there_is_named_with_the_nearest(logs, shown, call, message):
    with pytest.raises(ValueError, match=message):
        call(logs)


def test_of_no_runs_nothing_is_shown_and_nothing_leads_anywhere(logs, shown):
    evidence = Evidence(logs, logs.runs.head(0), "difficulty")
    evidence.show()
    assert shown == []
    table = pd.DataFrame({"model_name": ["alder"]})
    assert evidence.link(table)["href"].tolist() == [""]
    assert evidence.link(table.head(0)).empty
    assert evidence.link(logs.runs.head(0)).empty
