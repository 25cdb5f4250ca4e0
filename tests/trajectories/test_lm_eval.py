"""Samples and results of lm-evaluation-harness: runs, scores, pairs, and what is said of files that lack something."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit import compare, trajectories
from evalkit.io import SourceError
from evalkit.kinds import has_flag, outcomes
from evalkit.kinds.detection import recognise
from evalkit.stats.pair_tests import mcnemar
from evalkit.trajectories.formats.lm_eval import name_parts
from evalkit.trajectories.parse import parse
from tests.trajectories.folders import lines as write_lines
from tests.trajectories.folders import write
from tests.trajectories.test_formats import SHARED, assert_parsing_never_raises, real, rows_of, runs_of

SETTINGS = {"temperature": 0.0}
STAMP = "2026-11-24T17-32-30.786836"
LATER = "2026-11-25T08-00-00.000001"


def sample(doc: int, acc: Any = 1.0, **changes: Any) -> dict[str, Any]:
    """Return a line of samples of multiple choice; a change to None takes a key out."""
    choices = {f"gen_args_{at}": {"arg_0": "2 + 2 =", "arg_1": f" {at}"} for at in range(2)}
    line = {
        "doc_id": doc,
        "doc": {"question": f"q{doc}"},
        "target": "1",
        "arguments": choices,
        "resps": [[["-0.5", "False"]], [["-0.25", "True"]]],
        "filtered_resps": [["-0.5", "False"], ["-0.25", "True"]],
        "filter": "none",
        "metrics": ["acc"],
        "doc_hash": f"hash{doc}",
        "acc": acc,
        **changes,
    }
    return {key: value for key, value in line.items() if value is not None}


def results(model: str = "org/alpha", *, task: str = "sums_mc", n: int = 2, **changes: Any) -> dict[str, Any]:
    """Return results of a task."""
    return {
        "results": {task: {"alias": task, "acc,none": 0.5, "acc_stderr,none": "N/A"}},
        "configs": {task: {"metric_list": [{"metric": "acc", "aggregation": "mean"}], "generation_kwargs": SETTINGS}},
        "versions": {task: 1.0},
        "n-shot": {task: 5},
        "n-samples": {task: {"original": 100, "effective": n}},
        "higher_is_better": {task: {"acc": True}},
        "config": {"model": "hf", "model_args": f"pretrained={model},dtype=auto"},
        "model_name": model,
        "lm_eval_version": "0.4.9",
        "pretty_env_info": "Hostname: somebody-s-laptop",
        **changes,
    }


def evaluation(folder: Path, *lines: Any, stamp: str = STAMP, task: str = "sums_mc", stated: Any = None) -> Path:
    """Write the files of a task: the samples, and results if they are given."""
    write_lines(folder / f"samples_{task}_{stamp}.jsonl", *lines)
    if stated is not None:
        write(folder / f"results_{stamp}.json", stated)
    return folder


def test_a_document_is_a_run_with_the_model_and_settings_of_the_results_with_its_stamp(tmp_path):
    evaluation(tmp_path / "org__alpha", sample(0), sample(7, 0.0), stated=results(n=3))
    evaluation(tmp_path / "org__alpha", sample(0), stamp=LATER, stated=results("org/beta", n=1))
    logs = trajectories.load(tmp_path)
    columns = ["model_name", "task_type", "task_id", "repetition", "is_successful", "task_checksum", "agent_version"]
    columns.append("temperature")
    about = ["version 1.0, 5-shot", "0.4.9", 0.0]
    assert rows_of(logs.runs, *columns) == [
        ["org/alpha", "sums_mc", "0", 0, True, *about],
        ["org/alpha", "sums_mc", "7", 0, False, *about],
        ["org/beta", "sums_mc", "0", 0, True, *about],
    ]
    assert "only some of the documents that were evaluated: 2 of 3 of sums_mc" in str(logs.chosen)
    assert logs.plans["planned"].tolist() == [3, 1]
    assert rows_of(logs.published, "model_name", "task_type", "metric", "value", "n")[0] == (
        ["org/alpha", "sums_mc", "acc,none", 0.5, 3]
    )
    frames = (logs.runs, logs.scores, logs.plans, logs.published, logs.ledger, logs.messages)
    assert not any("laptop" in frame.to_csv() for frame in frames)


@pytest.mark.parametrize(
    ("stated", "folder", "model"),
    [
        (None, "org__alpha", "org/alpha"),
        ({"model_name": None}, "x", "org/alpha"),  # model_args name it
        ({"model_name": None, "config": {"model_args": {"pretrained": "org/base", "peft": "lora"}}}, "x", "lora"),
        ({"model_name": "qz4", "config": {"model_args": ""}}, "x", "qz4"),
        ({"model_name": "/home/somebody/models/oak"}, "x", "~/models/oak"),
    ],
)
def test_the_model_is_that_of_the_results_else_of_their_arguments_else_the_folder(tmp_path, stated, folder, model):
    evaluation(tmp_path / folder, sample(0), stated=None if stated is None else results(**stated))
    logs = trajectories.load(tmp_path)
    assert logs.runs["model_name"].tolist() == [model]
    is_random = model == "qz4"
    assert logs.ledger["reason"].str.contains("its name is a random id").any() == is_random


def test_filters_and_metrics_are_scores_of_one_run_of_which_the_same_counts_in_every_file(tmp_path):
    lines = [
        sample(doc, None, filter=name, metrics=["f1", "em", "parts"], f1=0.5, em=float(name == "strict"), parts=[1, 0])
        for name in ("strict", "flexible")
        for doc in (0, 1)
    ]
    evaluation(tmp_path / "org__alpha", *lines)
    evaluation(tmp_path / "org__beta", *reversed(lines))
    logs = trajectories.load(tmp_path)
    assert sorted(rows_of(logs.runs, "task_id", "score_key", "score")) == [[doc, "em,strict", 1.0] for doc in "0011"]
    assert set(logs.scores["key"]) == {"f1,strict", "em,strict", "f1,flexible", "em,flexible"}
    assert "score: em,strict; there are also em,flexible, f1,flexible and f1,strict" in str(logs.chosen)
    assert runs_of(tmp_path, score="em,flexible")["score"].tolist() == [0.0] * 4


@pytest.mark.parametrize(
    ("line", "keys"),
    [
        ({"filter": None, "metrics": None, "acc_norm": 0.0, "prompt_hash": "p"}, ["acc,none", "acc_norm,none"]),
        ({"acc": True}, ["acc,none"]),
        ({"acc": [1, 0]}, []),
        ({"acc": "1"}, []),
        ({"metrics": []}, []),
        ({"metrics": ["acc", "gone"]}, ["acc,none"]),
    ],
)
def test_metrics_are_the_named_values_that_are_numbers_of_older_lines_all_further_ones(tmp_path, line, keys):
    parsed = parse(f"samples_t_{STAMP}.jsonl", json.dumps(sample(0, **{"acc": 1.0, **line})).encode())
    assert [row[1] for row in parsed.rows["scores"]] == keys
    assert ("no metric is a number for 1 document" in parsed.reason) == (not keys)


def test_lower_scores_are_turned_where_they_are_better_unless_they_are_log_likelihoods(tmp_path):
    metrics = [{"metric": "toxic", "aggregation": "mean"}, {"metric": "perplexity", "aggregation": "perplexity"}]
    stated = results(
        configs={"sums_mc": {"metric_list": metrics}},
        higher_is_better={"sums_mc": {"toxic": False, "perplexity": False}},
    )
    line = sample(0, None, metrics=["toxic", "perplexity"], toxic=0, perplexity=-3.5)
    evaluation(tmp_path, line, sample(1, None, metrics=["toxic"], toxic=1), stated=stated)
    logs = trajectories.load(tmp_path)
    assert rows_of(logs.runs, "score", "is_successful") == [[1.0, True], [0.0, False]]
    assert "lower is better for toxic,none" in str(logs.chosen)
    logs = trajectories.load(tmp_path, score="perplexity,none")
    assert (logs.runs["score"].tolist()[0], "turned" in logs.chosen) == (-3.5, False)


def test_two_models_on_shared_documents_give_mcnemars_table_and_other_documents_are_never_paired(tmp_path):
    first = [1, 1, 1, 1, 1, 1, 0, 0, 1, 0, 1, 1, 1, 1]
    second = [1, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 1]
    evaluation(tmp_path / "org__alpha", *(sample(doc, float(acc)) for doc, acc in enumerate(first)), stated=results())
    other = [sample(doc, float(acc)) for doc, acc in enumerate(second)]
    other[13]["doc_hash"] = "another"  # equal doc_id
    evaluation(tmp_path / "org__beta", *other[:12], other[13], stated=results("org/beta"))  # without document 12
    runs = runs_of(tmp_path)
    table = outcomes(runs).table
    wide = table.pivot(index="task", columns="model_name", values="value").dropna()
    assert pd.crosstab(wide["org/alpha"], wide["org/beta"]).to_numpy().tolist() == [[2, 1], [7, 2]]
    opposite = compare.discordant(runs)
    assert (len(opposite), opposite["value_a"].sum()) == (8, 7)
    (pair,) = compare.pairs(runs).to_dict("records")
    assert (pair["n_tasks"], pair["n_unshared"], pair["p_value"]) == (12, 0, pytest.approx(mcnemar(7, 1, 12)))
    tasks = set(runs["task_id"])
    assert {"13 hash13", "13 another", "12"} <= tasks
    assert "13" not in tasks


@pytest.mark.parametrize(
    ("only_alpha", "only_beta", "changed"),
    [(0, 0, 0), (6, 0, 0), (4, 5, 0), (0, 0, 5), (3, 8, 2)],  # numbers of documents; `changed` ones have other hashes
)
def test_documents_that_only_one_model_ran_do_not_change_the_test(tmp_path, only_alpha, only_beta, changed):
    shared = [(1, 1)] * 4 + [(1, 0)] * 6 + [(0, 1)] * 2 + [(0, 0)] * 3
    alpha = [sample(doc, float(acc)) for doc, (acc, _) in enumerate(shared)]
    beta = [sample(doc, float(acc)) for doc, (_, acc) in enumerate(shared)]
    alpha += [sample(100 + doc, 1.0) for doc in range(only_alpha + changed)]
    beta += [sample(200 + doc, 0.0) for doc in range(only_beta)]
    beta += [sample(100 + only_alpha + doc, 0.0, doc_hash=f"new{doc}") for doc in range(changed)]
    evaluation(tmp_path / "org__alpha", *alpha, stated=results(n=len(alpha)))
    evaluation(tmp_path / "org__beta", *beta, stated=results("org/beta", n=len(beta)))
    runs = runs_of(tmp_path)
    board = compare.leaderboard(runs)
    against = compare.against(runs, "org/beta")
    for table in (compare.pairs(runs), board.pairs, against[against["model_name"].eq("org/alpha")]):
        assert table["p_value"].tolist() == [pytest.approx(mcnemar(6, 2, 15))]
    assert not board.pairs["decided"].any()


def test_stamps_of_one_folder_are_repetitions_and_a_copy_elsewhere_counts_once(tmp_path):
    for folder in ("run", "copy"):
        model = tmp_path / folder / "org__alpha"
        evaluation(model, sample(0), stated=results(n=1))
        evaluation(model, sample(0, 0.0), sample(1), stamp=LATER, stated=results(n=2))
    runs = runs_of(tmp_path)
    counted = runs[~has_flag(runs, "duplicate")]
    assert sorted(rows_of(counted, "task_id", "score")) == [["0", 0.0], ["0", 1.0], ["1", 1.0]]
    assert counted["repetition"].nunique() == 2


@pytest.mark.parametrize(
    ("first", "second", "names"),
    [
        ("revision=step1,dtype=auto", "revision=step2", ["org/a (revision=step1)", "org/a (revision=step2)"]),
        ("load_in_4bit=True", "dtype=auto", ["org/a (load_in_4bit=True)", "org/a"]),
        ("revision=main,batch_size=1", "load_in_4bit=False", ["org/a", "org/a"]),
        ("max_length=4096,kv_cache_dtype=fp8", "max_length=4096", ["org/a (kv_cache_dtype=fp8)", "org/a"]),
        ("think_end_token=</t>,api_key=s3", "api_key=s4", ["org/a (think_end_token=</t>)", "org/a"]),
        ("seed=1,tensor_parallel_size=2,enable_thinking=True", "seed=2", ["org/a", "org/a"]),
    ],
)
def test_arguments_that_change_answers_make_other_models_unless_they_are_defaults(tmp_path, first, second, names):
    for stamp, arguments in ((STAMP, first), (LATER, second)):
        config = {"model_args": f"pretrained=org/a,{arguments}"}
        evaluation(tmp_path / "org__a", sample(0), stamp=stamp, stated=results("org/a", config=config))
    logs = trajectories.load(tmp_path)
    assert logs.runs.sort_values("source")["model_name"].tolist() == names
    assert logs.published["model_name"].tolist() == names


@pytest.mark.parametrize(
    ("first", "second", "parts"),
    [
        ({"system_instruction": "Be brief."}, {"system_instruction": None}, ["system_instruction=Be brief.)", ""]),
        ({"system_instruction": "Be\nbrief."}, {"system_instruction": "x" * 99}, ["system_instruction="] * 2),
        ({"chat_template": "{{ messages }}" * 9}, {"chat_template": None}, ["chat_template=", ""]),
        ({"config": {"model_args": {"thinking": "long" * 20}}}, {}, ["thinking=", ""]),
        ({"generation_kwargs": {"top_p": 0.9}}, {"generation_kwargs": {"top_p": 1}}, ["top_p=0.9", "top_p=1"]),
        ({"generation_kwargs": {"temperature": 0.0}}, {"generation_kwargs": {}}, ["", ""]),
        ({"generation_kwargs": {"until": ["a"]}}, {"generation_kwargs": {"until": ["b"]}}, ["", ""]),
    ],
)
def test_prompts_and_settings_of_generation_make_other_models_too(tmp_path, first, second, parts):
    for stamp, changes in ((STAMP, first), (LATER, second)):
        stated = results("org/a", **{key: value for key, value in changes.items() if key != "generation_kwargs"})
        stated["configs"]["sums_mc"]["generation_kwargs"] = changes.get("generation_kwargs", SETTINGS)
        evaluation(tmp_path / "org__a", sample(0), stamp=stamp, stated=stated)
    names = runs_of(tmp_path).sort_values("source")["model_name"].tolist()
    assert all(name.startswith(f"org/a ({part}" if part else "org/a") for name, part in zip(names, parts, strict=True))
    assert len(set(names)) == (2 if any(parts) else 1)
    assert max(map(len, names)) < 50


def test_a_version_or_a_number_of_shots_that_differs_is_a_condition(tmp_path):
    evaluation(tmp_path / "org__alpha", sample(0), stated=results())
    evaluation(tmp_path / "org__beta", sample(0), stated=results("org/beta", **{"n-shot": {"sums_mc": 0}}))
    runs = runs_of(tmp_path)
    assert runs["task_version"].tolist() == ["version 1.0, 5-shot", "version 1.0, 0-shot"]


def test_old_lines_without_filters_are_one_run_and_their_documents_have_the_hash_of_newer_ones(tmp_path):
    old = {key: value for key, value in sample(0).items() if key not in ("filter", "metrics", "doc_hash")}
    evaluation(tmp_path / "org__alpha", old, {**old, "acc": 0.0})
    logs = trajectories.load(tmp_path)
    assert rows_of(logs.runs, "task_id", "score") == [["0", 1.0]]
    assert logs.scores["key"].tolist() == ["acc,none", "acc,filter 2"]
    assert logs.ledger["reason"].tolist() == ["filters without names, in their order"]


def old_evaluation(folder: Path, model: str, **scores: list[float]) -> None:
    """Write a list of samples of a task for each filter, without names of filters, as before 0.4.3."""
    lines = [
        sample(doc, None, filter=None, metrics=None, doc_hash=None, em=value)
        for values in scores.values()
        for doc, value in enumerate(values)
    ]
    (folder / f"pretrained__{model.replace('/', '__')},dtype__float_words_gen.jsonl").write_text(
        json.dumps(lines, indent=2)
    )
    stated = results(model, task="words_gen")
    stated["configs"]["words_gen"]["filter_list"] = [{"name": name} for name in scores]
    stated["results"]["words_gen"] = {f"em,{name}": sum(values) / len(values) for name, values in scores.items()}
    write(folder / "results.json", {key: value for key, value in stated.items() if key != "model_name"})


def test_before_stamps_files_name_the_model_and_results_of_any_model_the_filters(tmp_path):
    old_evaluation(tmp_path, "org/alpha", strict=[1.0, 0.0], flexible=[1.0, 1.0])
    old_evaluation(tmp_path, "org/beta", strict=[0.0, 0.0], flexible=[0.0, 1.0])
    logs = trajectories.load(tmp_path)
    assert rows_of(logs.runs, "model_name", "task_type", "task_id", "score_key", "score") == [
        ["org/alpha", "words_gen", "0", "em,strict", 1.0],
        ["org/alpha", "words_gen", "1", "em,strict", 0.0],
        ["org/beta", "words_gen", "0", "em,strict", 0.0],
        ["org/beta", "words_gen", "1", "em,strict", 0.0],
    ]
    assert set(logs.scores["key"]) == {"em,strict", "em,flexible"}
    assert set(logs.runs["model_source"]) == {"file", "log"}  # the results are of the last model


def test_values_that_are_no_numbers_are_named(tmp_path):
    evaluation(tmp_path / "a", sample(0, metrics=["acc", "parts"], parts=[1, 0]))
    assert "values that are no numbers: parts" in trajectories.load(tmp_path).ledger["reason"].tolist()


def test_results_without_samples_are_named_and_alone_are_an_error(tmp_path):
    both = results(n=1)
    both["results"]["other"] = both["results"]["sums_mc"]
    both["n-samples"]["other"] = {"original": 9, "effective": 9}
    evaluation(tmp_path / "a", sample(0), stated=both)
    ledger = trajectories.load(tmp_path).ledger
    assert "no samples of other, only scores over all documents" in ledger["reason"].tolist()
    write(tmp_path / "b" / f"results_{STAMP}.json", results())
    with pytest.raises(SourceError, match="only scores over all documents; --log_samples"):
        trajectories.load(tmp_path / "b")


def test_a_single_file_of_samples_has_the_model_of_the_results_beside_it(tmp_path):
    evaluation(tmp_path / "x", sample(0), stated=results("org/gamma", n=50))
    logs = trajectories.load(tmp_path / "x" / f"samples_sums_mc_{STAMP}.jsonl")
    assert (logs.runs["model_name"].tolist(), len(logs.plans), len(logs.ledger)) == (["org/gamma"], 0, 1)


@pytest.mark.parametrize(("where", "n"), [("model_name=A", 1), ("task_type=sums_mc", 2), ("is_successful=True", 0)])
def test_published_figures_are_renamed_and_selected_with_the_runs_that_they_are_of(tmp_path, where, n):
    evaluation(tmp_path / "a", sample(0), stated=results())
    evaluation(tmp_path / "b", sample(0), stated=results("org/beta"))
    logs = trajectories.load(tmp_path, rename="org/alpha=A", where=where)
    assert logs.published["model_name"].tolist() == ["A", "org/beta"][:n]


def test_broken_and_other_lines_are_counted_and_the_rest_is_read(tmp_path):
    lines = [sample(0), '{"doc_id": 1, "do', "[1]", {"note": "x"}, json.dumps(sample(2)).replace("1.0", "NaN")]
    evaluation(tmp_path, *lines)
    logs = trajectories.load(tmp_path)
    assert rows_of(logs.runs, "task_id", "score") == [["0", 1.0], ["2", None]]
    said = (
        "1 line without a document left out, no metric is a number for 1 document, "
        "1 broken line left out, 1 line without an object left out"
    )
    assert logs.ledger["reason"].tolist() == [said]


LIKELY = "log-likelihood"
CHAT = json.dumps([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}])


@pytest.mark.parametrize(
    ("arguments", "resps", "spoken"),
    [
        ({"gen_args_0": {"arg_0": "Hi", "arg_1": {"until": ["\n"]}}}, [["yo", "hey"]], ["Hi", "yo", "hey"]),
        ([["Hi", {"until": []}]], [["yo"]], ["Hi", "yo"]),
        ({"gen_args_0": {"arg_0": CHAT, "arg_1": {}}}, [["yo"]], ["Be brief.", "Hi", "yo"]),
        ({"gen_args_0": {"arg_0": [CHAT], "arg_1": {}}}, [["yo"]], ["Be brief.", "Hi", "yo"]),
        ([["Hi"]], [["-2.5"]], ["Hi", f"{LIKELY} -2.5 of the whole text"]),
        (
            [["A", "x"], ["B", "x"]],
            [[["-1", "True"]], [["-2", "False"]]],
            ["A", f"{LIKELY} -1 of 'x'", "B", f"{LIKELY} -2 of 'x'"],
        ),
        (
            [["A", "x"], ["A", "y"]],
            [[["-1", "True"]], [["-2", "False"]]],
            ["A", f"{LIKELY} -1 of 'x'\n{LIKELY} -2 of 'y'"],
        ),
        (None, None, []),
    ],
)
def test_prompts_and_answers_are_shown_in_each_form_of_arguments(tmp_path, arguments, resps, spoken):
    line = {**sample(0), "arguments": arguments, "resps": resps}
    texts = trajectories.load(evaluation(tmp_path, line)).messages["text"].tolist()
    assert texts[: len(spoken)] == spoken
    assert texts[-1] == "acc,none = 1.0"


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        (f"o/m/samples_a_b_{STAMP}.jsonl", ("o/m", STAMP, "a_b")),
        (f"o\\m\\x_{STAMP}.json", ("o/m", STAMP, "x")),
        ("samples_a_b.jsonl", ("", "", "a_b")),
    ],
)
def test_the_name_of_a_file_is_cut_at_its_stamp(path, parts):
    assert name_parts(path) == parts


def test_samples_are_recognised_by_their_beginning_however_long_the_first_document_is():
    line = json.dumps({**sample(0), "doc": {"context": "x" * 200_000}}).encode()
    found = recognise(line[:65_536])
    assert (found.title, found.format) == ("agent trajectory", "lm-eval samples")


@given(st.sampled_from([sample(0), results()]), st.data())
def test_parsing_never_raises_whatever_a_line_or_results_hold(shape, data):
    assert_parsing_never_raises(shape, data, f"samples_t_{STAMP}.jsonl", "results.json")


@real
def test_real_samples_have_the_rates_that_their_results_state():
    logs = trajectories.load(SHARED / "leaderboards" / "lm-eval" / "output")
    assert set(logs.ledger["status"]) == {"used"}
    assert len(logs.runs) == 40
    assert "samples_cut" not in logs.chosen
    means = logs.scores.merge(logs.runs[["run_id", "model_name", "task_type"]]).groupby(
        ["model_name", "task_type", "key"]
    )
    stated = logs.published.set_index(["model_name", "task_type", "metric"])["value"]
    assert means["value"].mean().to_dict() == pytest.approx(stated.to_dict())


def test_tasks_without_the_chosen_score_are_left_out_and_named(tmp_path):
    for model, right in {"alpha": 1.0, "beta": 0.0}.items():
        graded = [sample(doc, None, metrics=["f1", "em"], f1=0.5, em=right) for doc in range(3)]
        evaluation(tmp_path / f"org__{model}", *graded, task="trivia")
        evaluation(tmp_path / f"org__{model}", sample(0), sample(1), task="sums_mc")
    logs = trajectories.load(tmp_path, score="em,none")
    assert rows_of(logs.runs, "task_type", "model_name", "score") == [
        ["trivia", model, score] for model, score in (("org/alpha", 1.0), ("org/beta", 0.0)) for _ in range(3)
    ]
    assert "left out, as they lack this score: sums_mc" in str(logs.chosen)
    assert len(trajectories.load(tmp_path).runs) == 10
