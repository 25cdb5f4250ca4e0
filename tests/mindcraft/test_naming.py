"""Which model ran: sources in their order, results files that are never run as code, stated layouts."""

import pytest

from evalkit.io import SourceError
from evalkit.mindcraft import load, runs_df
from evalkit.mindcraft.layout import compile_layout
from tests.mindcraft.builders import write_all

RESULTS = "{'total': 3, 'successful': 1, 'exp_name': 'x', 'model': 'from-results', 'success_rate': nan}"
LOG = "exp_1/cook/Andy_0_0.json"
S3 = "cooking/from/s3/suite/exp/"


def names(root, **options) -> list[tuple[str, str]]:
    runs = runs_df(root, **options)
    return list(zip(runs["model_name"], runs["model_source"], strict=True))


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({LOG: 1}, ("unknown", "unknown")),
        ({LOG: 1, "exp_1/results.txt": RESULTS}, ("from-results", "results")),
        ({LOG: 1, "exp_1/cook/results.txt": RESULTS}, ("from-results", "results")),
        ({LOG: 1, "exp_1/results.json": {"total": 1, "model": "a", "exp_name": "x"}}, ("a", "results")),
        ({LOG: 1, "results.txt": RESULTS}, ("unknown", "unknown")),
        ({LOG: 1, "exp_1/last_profile.json": {"name": "Andy", "model": "p"}}, ("p", "profile")),
        ({LOG: 1, "exp_1/Andy_0.json": {"name": "Andy", "model": {"api": "x", "model": "p"}}}, ("p", "profile")),
        ({LOG: 1, "exp_1/a.json": {"model": "b"}, "exp_1/c.json": {"model": "a"}}, ("a + b", "profile")),
        ({LOG: 1, "exp_1/profile.json": {"model": {"api": "x"}}}, ("unknown", "unknown")),
        ({f"{S3}cook/Andy_0_0.json": 1}, ("from/s3", "s3_path")),
        ({f"{S3}cook/Andy_0_0.json": 1, f"{S3}results.txt": RESULTS}, ("from-results", "results")),
        ({f"{S3}cook/Andy_0_0.json": 1, f"{S3}profile.json": {"model": "p"}}, ("from/s3", "s3_path")),
        ({"small/llama/cook/agent_0.json": 1}, ("llama", "parent_folder")),
        ({"small/llama/cook/agent_0.json": 1, "small/llama/profile.json": {"model": "p"}}, ("p", "profile")),
        ({"exp_1/cook_Andy_0_0.json": 1}, ("unknown", "unknown")),
        ({"exp_1/cook_Andy_0_0.json": 1, "exp_1/results.txt": RESULTS}, ("from-results", "results")),
        ({LOG: 1, "exp_1/results.txt": RESULTS, "exp_1/profile.json": {"model": "p"}}, ("from-results", "results")),
        (
            {
                LOG: 1,
                "exp_1/results.txt": RESULTS,
                "exp_1/results.json": {"total": 1, "successful": 1, "exp_name": "x"},
            },
            ("from-results", "results"),
        ),
    ],
)
def test_the_best_source_names_the_model(tmp_path, files, expected):
    assert names(write_all(tmp_path / "experiments", files)) == [expected]


@pytest.mark.parametrize(
    ("source", "path", "model"),
    [
        ("experiments", "experiments/gpt-4o/cooking/t", "gpt-4o"),
        ("experiments", "experiments/gpt-4o/cooking/exp_1/t", "gpt-4o"),
        ("experiments/gpt-4o/cooking", "experiments/gpt-4o/cooking/t", "gpt-4o"),  # above the source, by its layout
        ("experiments/gpt-4o/cooking/t", "experiments/gpt-4o/cooking/t", "gpt-4o"),
        ("experiments", "experiments/cooking/gpt-4o/t", "gpt-4o"),
        ("experiments", "experiments/cooking/t", "unknown"),
        ("experiments", "experiments/techtree/t", "unknown"),
        ("gpt-4o", "gpt-4o/t", "gpt-4o"),
        ("work/t", "work/t", "unknown"),  # one task's folder; above it may lie anything
        ("work/t/Andy_0_0.json", "work/t", "unknown"),
        ("experiments", "experiments/gpt-4o/exp_1/t", "unknown"),
    ],
)
def test_a_folder_names_a_model_in_the_source_or_above_a_task_type(tmp_path, monkeypatch, source, path, model):
    root = write_all(tmp_path / "someone", {f"{path}/Andy_0_0.json": 1})
    assert [name for name, _ in names(root / source)] == [model]
    monkeypatch.chdir((root / source).parent)
    assert [name for name, _ in names((root / source).name)] == [model]
    if model == "unknown":
        assert names(root / source, model="m") == [("m", "stated")]


@pytest.mark.parametrize(
    ("where", "files", "expected"),
    [
        ("crafting/study", {"E/gpt-4o/multiagent_cooking_1/agent_0.json": 1}, ("gpt-4o", "parent_folder")),
        ("crafting/team/evals", {LOG: 1, "exp_1/profile.json": {"model": "p"}}, ("p", "profile")),
        ("cooking/from", {"s3/suite/exp_1/cook/Andy_0_0.json": 1}, ("from/s3", "s3_path")),
        ("cooking/from/s3/suite", {"named/multiagent_cooking_1/Andy_0_0.json": 1}, ("from/s3", "s3_path")),
        ("cooking/from/s3/suite/named", {"multiagent_cooking_1/Andy_0_0.json": 1}, ("from/s3", "s3_path")),
        ("cooking", {"from/s3/suite/exp/cook/Andy_0_0.json": 1}, ("from/s3", "s3_path")),
    ],
)
def test_a_path_may_be_s3_like_from_above_unless_a_profile_or_the_task_tells_otherwise(
    tmp_path, where, files, expected
):
    assert names(write_all(tmp_path / where, files)) == [expected]


def test_the_folder_above_what_is_loaded_is_asked_too(tmp_path):
    write_all(tmp_path, {LOG: 1, "exp_1/results.txt": RESULTS})
    assert names(tmp_path / "exp_1/cook") == [("from-results", "results")]
    assert names(tmp_path / LOG) == [("from-results", "results")]


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("{'model': 'm'}", "m"),
        ("\ufeff{'model': 'm'}\n", "m"),
        ("{'model': 'm', 'rate': nan, 'top': inf, 'none': None}", "m"),
        ("{'model': {'api': 'x', 'model': 'm'}}", "m"),
        ('{"model": "m"}', "m"),
        ("{'model': 5}", "unknown"),
        ("{'model': ' '}", "unknown"),
        ("{}", "unknown"),
    ],
)
def test_results_are_read_as_a_dictionary(tmp_path, text, model):
    logs = load(write_all(tmp_path, {LOG: 1, "exp_1/results.txt": text}))
    assert logs.runs["model_name"].tolist() == [model]
    assert logs.ledger["status"].tolist() == ["used", "used"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("__import__('os').system('touch {marker}')", "ValueError"),
        ("{{'model': open('{marker}', 'w').name}}", "ValueError"),
        ("[x for x in ().__class__.__base__.__subclasses__()]", "ValueError"),
        ("", "SyntaxError"),
        ("[1]", "TypeError: no dictionary"),
        ("'model'", "TypeError: no dictionary"),
        ("total: 3", "SyntaxError"),
        ("{{'model': 'm'", "SyntaxError"),
        ("(" * 5000, "SyntaxError|MemoryError|RecursionError"),
        ("-" * 50_000 + "1", "SyntaxError|MemoryError|RecursionError"),
        ("{{[]: 1}}", "TypeError"),
        ("\0", "ValueError|SyntaxError"),
        ("#" * 200_000, "ValueError: 200000 bytes"),
    ],
)
def test_hostile_results_are_never_run_and_the_ledger_names_them(tmp_path, text, error):
    marker = tmp_path / "marker"
    logs = load(write_all(tmp_path / "logs", {LOG: 1, "exp_1/results.txt": text.format(marker=marker)}))
    assert not marker.exists()
    assert logs.runs["model_name"].tolist() == ["unknown"]
    failed = logs.ledger[logs.ledger["status"] == "failed"]
    assert failed["source"].str.endswith("results.txt").tolist() == [True]
    assert failed["reason"].str.match(error).all()


def test_results_that_are_not_utf8_are_named(tmp_path):
    logs = load(write_all(tmp_path, {LOG: 1, "exp_1/results.txt": b"{'model': '\xff'}"}))
    assert logs.ledger["reason"].str.contains("UnicodeDecodeError").sum() == 1


def test_the_number_of_tasks_of_an_experiment_is_kept(tmp_path):
    runs = runs_df(write_all(tmp_path, {LOG: 1, "exp_1/results.txt": RESULTS, "b/m/cook/agent_0.json": 1}))
    assert runs.set_index("experiment")["experiment_total"].to_dict()["exp_1"] == 3
    assert runs["experiment_total"].isna().sum() == 1


LAYOUTS = [
    ("{model_name}/{task_id}", "llama/cook", {"model_name": "llama", "task_id": "cook"}),
    ("{model_name}/{task_id}", "org/llama/cook", {"model_name": "org/llama", "task_id": "cook"}),
    ("{task_id}/{model_name}", "cook/exp_1", {"model_name": "exp_1", "task_id": "cook"}),
    ("{model_name}/run_{task_id}", "llama/run_cook", {"model_name": "llama", "task_id": "cook"}),
    ("{experiment}/{model_name}/{task_id}", "e/m/cook", {"experiment": "e", "model_name": "m", "task_id": "cook"}),
    (
        "{task_type}/{model_name}/{suite}/{experiment}/{task_id}",
        "crafting/org/m/s/e/it",
        {"task_type": "techtree", "model_name": "org/m", "suite": "s", "experiment": "e", "task_id": "it"},
    ),
]


@pytest.mark.parametrize(("layout", "path", "expected"), LAYOUTS)
def test_a_stated_layout_is_followed(tmp_path, layout, path, expected):
    root = write_all(tmp_path, {f"{path}/Andy_0_0.json": 1, f"{path}/results.txt": RESULTS})
    (run,) = runs_df(root, layout=layout).to_dict("records")
    assert {name: run[name] for name in expected} == expected
    assert run["model_source"] == "layout"
    assert not run["flag_layout_mismatch"]


def test_a_layout_reaches_above_what_is_loaded(tmp_path):
    write_all(tmp_path, {"exp/llama/cook/Andy_0_0.json": 1})
    assert names(tmp_path / "exp/llama/cook", layout="{model_name}/{task_id}") == [("llama", "layout")]


def test_a_path_that_does_not_fit_is_flagged_and_kept(tmp_path):
    root = write_all(tmp_path, {"m1/run_a/Andy_0_0.json": 1, "m2/b/Andy_0_0.json": 1})
    runs = runs_df(root, layout="{model_name}/run_{task_id}")
    assert runs["model_name"].tolist() == ["m1", "m2"]
    assert runs["model_source"].tolist() == ["layout", "parent_folder"]
    assert runs["flag_layout_mismatch"].tolist() == [False, True]


def test_a_flat_file_fits_a_layout_too(tmp_path):
    root = write_all(tmp_path, {"llama/exp_1/cook_Andy_0_0.json": 1})
    runs = runs_df(root, layout="{model_name}/{experiment}/{task_id}")
    assert runs[["model_name", "experiment", "task_id"]].to_numpy().tolist() == [["llama", "exp_1", "cook"]]


@pytest.mark.parametrize("layout", ["{model}/{task_id}", "{task_id}/{task_id}", "models/tasks", "{}", "/"])
def test_a_layout_that_can_not_be_is_refused(layout):
    with pytest.raises(SourceError, match="model_name"):
        compile_layout(layout)
