import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import evalkit
from evalkit import compare, failures, kinds
from evalkit.cli import main
from evalkit.display.words import finding_text
from evalkit.io import SourceError
from evalkit.kinds.runs import exported
from evalkit.kinds.selection import run_ids_of
from evalkit.labels import (
    compare_judges,
    detector_verdicts,
    differences,
    disagreements,
    draw,
    figures,
    findings,
    judge_table,
    label_plan,
    model_table,
    next_units,
    people_agreement,
    precision_recall,
    read_labels,
    read_verdicts,
    verdicts_and_labels,
)
from evalkit.labels.answers import Table
from evalkit.labels.judges import first_judge
from evalkit.stats import corrected_rate
from evalkit.trajectories import analysis as trajectories
from evalkit.trajectories.figures import cost

RUNS, LABELS, VERDICTS = (f"samples:judges/{name}" for name in ("runs.jsonl", "labels.csv", "verdicts.csv"))


@pytest.fixture(scope="module")
def logs():
    return evalkit.load(RUNS)


@pytest.fixture(scope="module")
def comparison(logs):
    return compare_judges(logs, read_labels(LABELS), read_verdicts(VERDICTS))


def run(*words):
    return CliRunner().invoke(main, ["judges", *words])


def test_the_corrected_rate_is_that_of_the_statistics(comparison):
    table = judge_table(comparison).set_index("judge")
    units, verdicts = comparison.units, comparison.verdicts["judge-a"].to_numpy()
    known = comparison.is_labelled
    found = corrected_rate(units.loc[known, "label"], verdicts[known], verdicts[~known])
    assert table.loc["judge-a", ["estimate", "low", "high"]].tolist() == pytest.approx(list(found[:3]), abs=0.005)
    assert table.loc["judge-a", "raw"] == pytest.approx(verdicts.mean())
    assert set(table["measure"]) == set(model_table(comparison)["measure"]) == {"share of yes, corrected by labels"}
    alone = units.loc[known, "label"].mean()
    assert table.loc[["always", "never"], "estimate"].tolist() == pytest.approx([alone, alone])
    assert table.loc["judge-a", "half_width"] < table.loc["judge-c", "half_width"] <= table.loc["always", "half_width"]


def test_a_sentence_says_what_labels_make_of_the_judge(comparison):
    texts = [finding_text(finding) for finding in findings(comparison)]
    assert texts[0].startswith("judge-a says 52 %; 56 labels correct this to 53 % [46, 60]; 40 more would give ± 5")
    assert "3 judges say between 32 and 77 %; corrected, between 53 and 58 %." in texts
    assert any("differ on 4 of 25 units that several labelled, and 4 without a majority" in text for text in texts)
    assert not any("ann" in text or "bob" in text for text in texts)


def test_each_model_is_corrected_by_its_own_labels(comparison):
    table = model_table(comparison)
    assert table.groupby("judge")["n"].sum().eq(56).all()
    assert table.groupby("judge")["units"].sum().eq(240).all()
    pairs = differences(comparison)
    own = table[table["judge"] == "judge-b"].set_index("model_name")
    pair = pairs[pairs["judge"] == "judge-b"].iloc[0]
    assert pair["estimate"] == pytest.approx(
        own.loc[pair["model_a"], "estimate"] - own.loc[pair["model_b"], "estimate"]
    )
    assert pair["low"] < pair["estimate"] < pair["high"]


def test_precision_and_recall_have_n_intervals_and_constants():
    said = pd.DataFrame(
        {"run_id": list("abcde") * 2, "judge": ["x"] * 5 + ["y"] * 5, "label": [1, 1, 1, 0, 0] + [0] * 5}
    )
    true = pd.DataFrame({"run_id": list("abcdez"), "label": [1, 1, 0, 1, 0, 1]})
    found = precision_recall(said, true).set_index("judge")
    assert found.index.tolist() == ["x", "y", "always", "never"]
    told_of = ["precision_estimate", "recall_estimate", "n", "precision_n", "recall_n"]
    assert found.loc["x", told_of].tolist() == pytest.approx([2 / 3, 2 / 3, 5, 3, 3])
    assert np.isnan(found.loc["y", "precision_estimate"])
    assert found.loc["always", ["precision_estimate", "recall_estimate"]].tolist() == pytest.approx([4 / 6, 1])
    assert (found["recall_low"] <= found["recall_estimate"]).all()


def test_disagreements_are_those_of_labelled_runs(comparison):
    found = disagreements(comparison)
    assert found["label"].ne(found["verdict"]).all()
    accuracy = judge_table(comparison).set_index("judge")["accuracy"]
    counts = found["judge"].value_counts()
    assert (1 - counts / 56).to_dict() == pytest.approx(accuracy[counts.index].to_dict())


def test_what_to_label_next_is_random_within_models(comparison):
    found = next_units(comparison, "judge-b", 30)
    waiting = comparison.units[comparison.units["label"].isna()]
    for model, own in found.groupby("model_name", sort=False):
        assert own["run_id"].tolist() == waiting.loc[waiting["model_name"] == model, "run_id"].head(len(own)).tolist()
    assert len(found) == 30
    plan = label_plan(comparison, "judge-b")
    assert plan["half_width"].is_monotonic_decreasing


def test_people_agree_as_far_as_they_labelled_the_same(comparison):
    found = people_agreement(comparison)
    assert found.n == 25
    assert 0.3 < found.estimate < 1


def test_labels_of_few_models_are_weighted_or_noted(logs, comparison):
    labelled = comparison.units[comparison.is_labelled]
    some = labelled.groupby("model_name").head(4)["run_id"]
    many = labelled.loc[labelled["model_name"] == "birch-70b", "run_id"]
    kept = comparison.labels[comparison.labels["run_id"].isin([*some, *many])]
    uneven = compare_judges(logs, Table(kept, []), read_verdicts(VERDICTS))
    found = judge_table(uneven)
    assert "by_model" in found["warning"].iloc[0]
    widths = found.set_index("judge")[["half_width", "after"]].loc["judge-b"].tolist()
    assert label_plan(uneven, "judge-b", [], [0, 40])["half_width"].tolist() == pytest.approx(widths)
    one = kept[kept["run_id"].isin(many)]
    found = judge_table(compare_judges(logs, Table(one, []), read_verdicts(VERDICTS)))
    assert "2 models without labels" in str(found["warning"].iloc[0])


def test_labels_chosen_by_the_judge_are_doubted(logs):
    verdicts = read_verdicts(VERDICTS)
    chosen = verdicts.rows.query("judge == 'judge-b' and verdict == 1").head(50)
    labels = Table(chosen.assign(question="", label=1.0, who=""), [])
    table = judge_table(compare_judges(logs, labels, verdicts)).set_index("judge")
    assert "unlike_labels" in table.loc["judge-b", "warning"]
    failed = logs.runs.loc[~logs.runs["is_successful"].astype(bool), ["run_id"]].head(60)
    labels = Table(failed.assign(turn=pd.array([pd.NA] * len(failed), "Int64"), question="", label=1.0, who=""), [])
    warnings = judge_table(compare_judges(logs, labels, verdicts))["warning"]
    assert all("success: 0 on average of labelled units" in str(warning) for warning in warnings)


def test_labels_that_any_judge_shows_to_be_no_random_ones_are_a_caveat(logs, comparison):
    refused = comparison.verdicts["judge-c"].eq(0) & comparison.units["label"].isna()
    chosen = comparison.units.loc[refused, ["run_id", "turn"]].head(60)
    labels = Table(chosen.assign(question="", label=np.arange(len(chosen)) % 2.0, who=""), [])
    compared = compare_judges(logs, labels, read_verdicts(VERDICTS))
    assert first_judge(judge_table(compared)) != "judge-c"
    [caveat] = [found for found in findings(compared) if found.code == "caveat"]
    assert "Verdicts of judge-c: 0 on average of labelled units" in finding_text(caveat)
    assert "at random?." not in finding_text(caveat)


def test_the_command_prints_rates_and_writes_files(tmp_path):
    output, following = tmp_path / "judges.csv", tmp_path / "next.csv"
    result = run(RUNS, "--labels", LABELS, "--verdicts", VERDICTS, "-o", str(output), "--next", str(following), "--all")
    assert result.exit_code == 0, result.output
    assert "judge-a   52 %     53 % [46, 60]" in result.output
    assert len(pd.read_csv(output)) == 5
    assert len(pd.read_csv(following)) == 20


@pytest.mark.parametrize(
    ("form", "words", "start"),
    [
        ("csv", ["--column", "run_id=trajectory", "--column", "label=said", "--yes", "fixed"], "mine says 52 %"),
        ("jsonl", [], "mine says 52 %"),
        ("score", [], "mine gives scores"),
        ("quality", ["--column", "score=quality"], "mine gives scores"),
    ],
)
def test_verdicts_in_any_table_with_any_ids(form, words, start, comparison, tmp_path):
    rows = read_verdicts(VERDICTS).rows.query("judge == 'judge-a'")
    path = tmp_path / f"mine.{form}"
    if form == "csv":  # evalkit's ids, other names, another word for yes
        said = comparison.verdicts["judge-a"].map({1: "fixed", 0: "not"})
        pd.DataFrame({"trajectory": comparison.units["run_id"], "said": said}).to_csv(path, index=False)
    elif form == "jsonl":
        rows[["run_id"]].assign(label=rows["verdict"].eq(1)).to_json(path, orient="records", lines=True)
    else:
        rows[["run_id"]].assign(**{form: 3 + 4 * rows["verdict"]}).to_csv(path, index=False)
    result = run(RUNS, "--labels", LABELS, "--verdicts", str(path), *words)
    assert result.exit_code == 0, result.output
    assert "53 % [46, 60]" in result.output
    assert result.output.startswith(start)


def test_a_named_score_is_one_of_the_runs_unless_verdicts_have_it(tmp_path):
    rows = [{"run_id": f"r{i}", "task": f"t{i}", "model": "elm", "points": i % 3, "tries": 1} for i in range(40)]
    pd.DataFrame(rows).to_csv(tmp_path / "runs.csv", index=False)
    mine = str(tmp_path / "mine.csv")
    pd.DataFrame(rows).assign(label=lambda rows: rows["points"] % 2)[["run_id", "label"]].to_csv(mine, index=False)
    arguments = [str(tmp_path / "runs.csv"), "--labels", mine, "--verdicts", mine]
    result = run(*arguments, "--column", "score=points")
    assert result.exit_code == 0, result.output
    assert "no column 'nothing'" in run(*arguments, "--column", "score=nothing").output


def csv_of(rows, separator=",", header=("run_id", "judge", "label"), words=("0", "1")):
    lines = [separator.join(header)] + [separator.join([run, "mine", words[said]]) for run, said in rows]
    return "\n".join(lines) + "\n"


def nested(rows):
    return "\n".join(
        f'{{"run_id": "{run}", "judge": {{"name": "mine"}}, "out": {{"label": {said}}}}}' for run, said in rows
    )


@pytest.mark.parametrize(
    ("make", "columns"),
    [
        (lambda rows: csv_of(rows, words=("No", "YES")), []),
        (lambda rows: csv_of(rows, words=("fail", "Pass")), []),
        (lambda rows: csv_of(rows, words=("False", "True")), []),
        (lambda rows: csv_of(rows, words=("0.0", "1.0")), []),
        (lambda rows: csv_of(rows, words=("incorrect", "correct")), []),
        (lambda rows: csv_of(rows, words=("0%", "100 %")), []),
        (lambda rows: csv_of(rows, ";"), []),
        (lambda rows: "\ufeff" + csv_of(rows, "\t"), []),
        (lambda rows: csv_of(rows, header=("Run_ID ", "Judge", " LABEL")), []),
        (lambda rows: csv_of(rows) + csv_of(rows), []),  # the file twice, with its header
        (lambda rows: csv_of([*rows, *rows, *((run, 1 - said) for run, said in rows)]), []),  # two of three verdicts
        (nested, ["label=out.label", "judge=judge.name"]),
    ],
)
def test_verdicts_of_many_shapes_are_the_same(make, columns, logs, comparison, tmp_path):
    own = read_verdicts(VERDICTS).rows.query("judge == 'judge-a'")
    path = tmp_path / "verdicts"
    path.write_text(make(list(zip(own["run_id"], own["verdict"].astype(int), strict=True))), encoding="utf-8")
    found = compare_judges(logs, read_labels(LABELS), read_verdicts(str(path), columns))
    assert found.verdicts["mine"].equals(comparison.verdicts["judge-a"].astype(float))
    assert not found.problems


SHUFFLED = [7 * number % 30 for number in range(30)]  # a whole number from 0 for each run, in another order


@pytest.mark.parametrize(
    ("columns", "ids", "cause"),
    [
        ({"id": SHUFFLED}, SHUFFLED, ""),
        ({"sampleID": [1 + number for number in SHUFFLED], "line": range(30)}, [1 + n for n in SHUFFLED], ""),
        ({"line": range(30), "id": SHUFFLED}, SHUFFLED, ""),
        ({"attempt": [30 - number for number in range(30)]}, [30 - number for number in range(30)], ""),
        ({"row": range(30, 60)}, range(30, 60), ""),
        ({"case id": SHUFFLED, "gid": range(30)}, SHUFFLED, "columns case id and gid contain"),
        ({"id": [f"job{number}" for number in range(30)]}, range(1, 31), "no labels of these runs"),
        ({"row": [*range(10), *range(50, 70)]}, range(30), "no labels of these runs"),  # some, by chance
    ],
)
def test_whole_numbers_are_ids_of_the_table_and_no_row_numbers(columns, ids, cause, tmp_path):
    passed = [number * number % 7 % 2 for number in range(30)]
    table = pd.DataFrame({"model": "m", "task": [f"t{number % 10}" for number in range(30)], "passed": passed})
    table.assign(**columns).to_csv(tmp_path / "runs.csv", index=False)
    verdicts = pd.DataFrame({"run_id": [*ids], "judge": "j", "label": passed})
    verdicts.to_csv(tmp_path / "verdicts.csv", index=False)
    verdicts.tail(12).to_csv(tmp_path / "labels.csv", index=False)
    arguments = read_labels(str(tmp_path / "labels.csv")), read_verdicts(str(tmp_path / "verdicts.csv"))
    runs = evalkit.load(str(tmp_path / "runs.csv"))
    if cause:
        with pytest.raises(SourceError, match=cause):
            compare_judges(runs, *arguments)
        return
    found = compare_judges(runs, *arguments)
    assert found.verdicts["j"].eq(found.units["outcome"].eq("success")).all()
    assert found.units.loc[found.is_labelled, "label"].eq(found.verdicts.loc[found.is_labelled, "j"]).all()
    assert (int(found.is_labelled.sum()), found.unknown) == (12, {"labels": 0, "verdicts": 0})


def test_a_unit_under_both_of_its_ids_is_one_and_contradictions_are_left_out(logs, comparison):
    verdicts = read_verdicts(VERDICTS).rows.query("judge == 'judge-a'")
    other = pd.DataFrame({"run_id": comparison.units["run_id"], "judge": "judge-a"})
    other = other.assign(turn=pd.array([pd.NA] * len(other), "Int64"), verdict=comparison.verdicts["judge-a"])
    other.loc[:2, "verdict"] = 1 - other.loc[:2, "verdict"]
    labels = read_labels(LABELS)
    renamed = labels.rows.assign(run_id=run_ids_of([labels.rows["run_id"]], logs.runs)[0])
    both = Table(pd.concat([labels.rows, renamed]), [])
    found = compare_judges(logs, both, Table(pd.concat([verdicts, other]), []))
    assert found.verdicts["judge-a"].isna().tolist() == [True] * 3 + [False] * 237
    assert found.problems == ["judge-a: 3 units with as many verdicts for yes as for no"]
    assert found.people == comparison.people._replace(rows=found.people.rows)
    assert found.people.rows.equals(comparison.people.rows)


def test_detectors_are_judged_by_labels_of_runs_or_turns():
    logs = evalkit.load("samples:trajectories/harbor")
    events = failures.events(logs)
    for turns in (False, True):
        units = draw(logs, turns=turns)
        keys = ["run_id", "turn"] if turns else ["run_id"]
        is_event = (
            units[keys]
            .astype("object")
            .apply(tuple, axis=1)
            .isin(set(events.loc[events["event"] == "failed_call", keys].astype("object").apply(tuple, axis=1)))
        )
        labels = Table(units[["run_id", "turn"]].assign(question="", who="", label=is_event.astype(float)).head(40), [])
        verdicts = Table(units[["run_id", "turn"]].assign(judge="j", verdict=1.0), [])
        found = compare_judges(logs, labels, verdicts)
        table = precision_recall(detector_verdicts(found, events), verdicts_and_labels(found)[1]).set_index("judge")
        assert table.loc["failed_call", ["precision_estimate", "recall_estimate", "n"]].tolist() == [1, 1, 40]
        assert table.loc["cut_off", "n"] == 40


@pytest.mark.parametrize(
    ("extra", "words", "unused"),
    [
        ({}, ("no", "yes"), ""),
        ({"alder-large-01": ""}, ("F", "T"), "Not used: 1 verdict of strict without a value."),
        ({"alder-large-01": "", "alder-large-02": "", "alder-large-03": "dunno"}, ("0", "1"), "2 verdicts of strict"),
    ],
)
def test_each_judge_of_a_file_gives_labels_or_scores(extra, words, unused, logs, comparison, tmp_path):
    own = read_verdicts(VERDICTS).rows.query("judge == 'judge-a'").set_index("run_id")["verdict"].astype(int)
    strict = own.map(dict(enumerate(words))).to_dict() | extra
    rows = [{"judge": "strict", "run_id": run_id, "label": word} for run_id, word in strict.items()]
    rows += [{"judge": "lenient", "run_id": run_id, "score": 5 * said + 2} for run_id, said in own.items()]
    (tmp_path / "both.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found = compare_judges(logs, read_labels(LABELS), read_verdicts(str(tmp_path / "both.jsonl")))
    expected = comparison.verdicts["judge-a"]
    assert found.verdicts["lenient"].equals(5 * expected + 2)
    assert found.verdicts["strict"].isna().sum() == len(extra)
    assert found.verdicts["strict"].fillna(expected).equals(expected)
    texts = " ".join(finding_text(finding) for finding in findings(found))
    assert unused in texts
    assert ("Not used" in texts) == bool(extra)
    assert ("row 4: label 'dunno' is no label" in texts) == (len(extra) == 3)


def test_bad_rows_are_named_and_unknown_ids_counted(tmp_path):
    path = tmp_path / "verdicts.csv"
    good = read_verdicts(VERDICTS).rows[["run_id", "judge", "verdict"]].set_axis(["run_id", "judge", "label"], axis=1)
    extra = pd.DataFrame({"run_id": ["nowhere", "alder-large-00"], "judge": "judge-z", "label": [1, "maybe"]})
    pd.concat([good.astype("object"), extra]).to_csv(path, index=False)
    result = run(RUNS, "--labels", LABELS, "--verdicts", str(path), "--all")
    assert result.exit_code == 0, result.output
    assert "1 verdict of unknown ids" in result.output
    assert "row 722: label 'maybe' is no label" in result.output


@pytest.mark.parametrize(
    ("labels", "verdicts", "cause"),
    [
        ("run_id,label\nnowhere,1\n", None, "no labels of these runs"),
        ("run_id,label\nalder-large-00,\n", None, "no unit has a label"),
        ("id,label\nalder-large-00,1\n", None, "no column 'run_id'"),
        (None, "run_id,judge\nalder-large-00,x\n", "no column label or score"),
        (None, "run_id,judge,label\nalder-large-00,x,fixed\n", "label 'fixed' is no label (--yes TEXT"),
        (None, "run_id,judge,label\nnowhere,x,1\n", "no verdicts of these runs"),
    ],
)
def test_files_that_do_not_fit_are_refused_with_the_cause(labels, verdicts, cause, tmp_path):
    given = {"--labels": LABELS, "--verdicts": VERDICTS}
    for name, text in {"--labels": labels, "--verdicts": verdicts}.items():
        if text:
            (tmp_path / name.strip("-")).write_text(text)
            given[name] = str(tmp_path / name.strip("-"))
    result = run(RUNS, *(word for pair in given.items() for word in pair))
    assert result.exit_code == 2
    assert cause in result.output


def test_turns_are_judged_like_runs(tmp_path):
    logs = evalkit.load(RUNS)
    turns = logs.turns[logs.turns["role"] == "assistant"].reset_index(drop=True)
    truth = turns["text"].str.startswith("$").astype(int)
    table = turns[["run_id", "turn"]].assign(judge="regex", label=truth)
    table.to_csv(tmp_path / "verdicts.csv", index=False)
    table.sample(80, random_state=1).drop(columns="judge").to_csv(tmp_path / "labels.csv", index=False)
    labels, verdicts = read_labels(str(tmp_path / "labels.csv")), read_verdicts(str(tmp_path / "verdicts.csv"))
    comparison = compare_judges(logs, labels, verdicts)
    found = judge_table(comparison).iloc[0]
    assert found["units"] == len(turns)
    assert found["low"] < truth.mean() < found["high"]
    assert found["agreement_estimate"] == 1


def test_the_figure_shows_what_judges_say_and_the_corrected_rates(comparison):
    ax = figures.rates(judge_table(comparison))
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == ["judge-a", "judge-b", "judge-c", "always", "never"]


@pytest.mark.parametrize("name", ["j" * 1_000_000, "about"], ids=["long", "short"])
def test_objects_with_long_names_are_no_columns_of_verdicts(tmp_path, name):
    path = tmp_path / "verdicts.jsonl"
    inner = {f"a{number}": 1 for number in range(20_000)}
    path.write_text(json.dumps({"run_id": "r", "judge": "j", "label": 1, name: inner}))
    assert read_verdicts(str(path)).rows["verdict"].tolist() == [1.0]


def test_a_column_with_hundreds_of_judges_is_refused(tmp_path):
    path = tmp_path / "verdicts.csv"
    path.write_text("run_id,judge,label\n" + "".join(f"r{number},id-{number},1\n" for number in range(300)))
    with pytest.raises(SourceError, match="300 judges, such as 'id-0'"):
        read_verdicts(str(path))


def test_rates_by_a_judge_are_marked_everywhere(tmp_path):
    source = "samples:trajectories/table/runs.csv"
    ids = evalkit.load(source).runs["run_id"]
    path = tmp_path / "outcomes.csv"
    every = ("trajectories", "compare", "audit --check names", "failures")
    for judge, part, mark, commands in (
        ("judge-a", ids, " by a judge", every),
        ("judge-a", ids[::2], " partly by a judge", ["compare"]),
        ("", ids, "", ["compare"]),
    ):
        pd.DataFrame({"run_id": part, "outcome": "success", "judge": judge}).to_csv(path, index=False)
        logs = evalkit.load(source, outcomes=str(path))
        board = compare.leaderboard(logs.runs)
        assert board.outcomes.name == f"success rate{mark}"
        exported(logs.runs, logs.kind).to_csv(tmp_path / "exported.csv", index=False)
        assert compare.leaderboard(pd.read_csv(tmp_path / "exported.csv")).outcomes.name == board.outcomes.name
        assert all(("judged" in warning) == bool(judge) for warning in kinds.rates(logs.runs)["warning"])
        assert ("judged" in board.notes) == bool(judge)
        texts = [finding_text(finding) for finding in compare.findings(board)]
        assert any("by a judge" in text for text in texts) == bool(judge)
        tables = [board.table, board.pairs, compare.reliability(board), trajectories.reliability(logs.runs, logs.plans)]
        tables += [
            compare.cost(board)[0],
            compare.at_budget(board)[0],
            compare.against(board, "birch/birch-70b"),
            compare.plan(board),
        ]
        for table in tables:
            assert all(("judged" in warning) == bool(judge) for warning in table["warning"])
        label = cost(tables[4], "cost").get_ylabel().replace("\n", " ")
        assert mark in label
        assert [word in label for word in ("judge", "partly")] == [word in mark for word in ("judge", "partly")]
        assert ("warning" in compare.pairs_to_show(board.pairs)) == bool(judge)
        for command in commands:
            text = CliRunner().invoke(main, [*command.split(), source, "--outcomes", str(path)]).output
            assert ("by a judge" in text) == bool(judge)


def test_an_unknown_question_is_refused(logs):
    with pytest.raises(SourceError, match="no labels for the question"):
        compare_judges(logs, read_labels(LABELS), read_verdicts(VERDICTS), question="Another?")


@pytest.mark.parametrize(("read", "columns"), [(read_labels, "run_id and label"), (read_verdicts, "run_id")])
@pytest.mark.parametrize("paths", ["", [], ()])
def test_no_file_is_refused(read, columns, paths):
    with pytest.raises(SourceError, match=f"no file with {columns} is named"):
        read(paths)
