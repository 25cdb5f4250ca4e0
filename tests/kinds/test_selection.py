"""Every command loads the same runs under the same names, for every kind."""

import json
import os
import pickle
import re
import shutil
from pathlib import Path

import fsspec
import pandas as pd
import pytest
from click.testing import CliRunner

import evalkit
from evalkit.cli import main
from evalkit.compare import pairs
from evalkit.display.follow import Following
from evalkit.io import SourceError, sources
from evalkit.kinds import outcomes, rates
from evalkit.kinds.kind import Assembled
from evalkit.kinds.registry import kind_named
from evalkit.kinds.selection import meets, renames_of, select_runs
from tests import messy
from tests.crafter.traces import hook, write

RUNS = pd.DataFrame({
    "task": pd.array(["a", "b", None], "str"),
    "turns": pd.array([4, 20, None], "Int64"),
    "score": [0.5, 1.0, float("nan")],
    "done": pd.array([True, False, None], "boolean"),
    "started": pd.to_datetime(["2026-01-01", "2026-02-01", None]).tz_localize("UTC"),
    "run_flags": [["x", "y"], [], ["y"]],
})  # fmt: skip


@pytest.mark.parametrize(
    ("where", "met"),
    [
        ("task=a", [True, False, False]),
        ("task!=a", [False, True, True]),  # one of which nothing is known is not a
        ("task=", [False, False, True]),
        (" turns >= 20 ", [False, True, False]),
        ("turns!=4", [False, True, True]),
        ("score<0.75", [True, False, False]),
        ("score<=1", [True, True, False]),
        ("done=yes", [True, False, False]),
        ("done!=true", [False, True, True]),
        ("started>=2026-01-15", [False, True, False]),
        ("run_flags=y", [True, False, True]),
        ("run_flags!=y", [False, True, False]),
        (["turns>=4", "done=false"], [False, True, False]),
        ([], [True, True, True]),
    ],
)
def test_conditions_select_runs(where, met):
    assert meets(RUNS, where).tolist() == met


@pytest.mark.parametrize("name", ["Prompt Style", "n-shot", "size (B)", "é"])
def test_a_condition_takes_the_name_of_any_column(name):
    runs = pd.DataFrame({name: ["a b", "c"]})
    assert meets(runs, f" {name} = a b ").tolist() == [True, False]
    assert meets(runs, f"{name}!=c").tolist() == [True, False]


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("turns", "write COLUMN=VALUE"),
        ("turn=4", "no column 'turn'; did you mean 'turns'"),
        ("turns>=many", "turns can't be compared this way: it contains Int64"),
        ("done=perhaps", "it contains boolean"),
        ("task>a", "it contains str"),
        ("started>soon", "it contains datetime64"),
    ],
)
def test_a_condition_that_can_t_be_met_says_what_to_write(where, words):
    with pytest.raises(SourceError, match=words):
        meets(RUNS, where)


@pytest.mark.parametrize("kind", messy.KINDS)
def test_all_frames_follow_the_runs_whose_ids_do_not_depend_on_how_the_source_is_written(kind, monkeypatch):
    monkeypatch.chdir(messy.folder(kind))
    run_id = evalkit.load(os.path.abspath("logs"), kind).runs["run_id"].iloc[0]
    logs = evalkit.load("logs", kind, where=[f"run_id={run_id}"])
    run = logs.runs.iloc[0]
    for name in dir(logs):
        frame = getattr(logs, name)
        if isinstance(frame, pd.DataFrame) and name != "ledger" and "source" in frame:
            own = frame["run_id"].eq(run["run_id"]) if "run_id" in frame else frame["source"].eq(run["source"])
            assert own.all(), name
    if kind == "steps":
        assert [history.source for history in logs.histories] == [run["source"]]


def test_no_run_that_meets_a_condition_is_an_error_that_says_which_values_there_are():
    source = str(messy.folder("mindcraft") / "logs")
    done = CliRunner().invoke(
        main, ["mindcraft", source, "--where", "task_type=construction", "--where", "model_name=none"]
    )
    assert done.exit_code == 2
    assert "no run where task_type=construction and model_name=none" in done.output
    assert messy.ONE in done.output


@pytest.mark.parametrize(
    ("conditions", "why"),
    [
        (["model_name=fig", "success=1"], "of model_name there are 'elm' and 'oak'"),
        (["success=1", "model_name=fig"], "of model_name there are 'elm' and 'oak'"),
        (["model_name=fig", "task=x"], "of model_name there are 'elm' and 'oak'"),
        (["model_name=oak", "success=0"], "some runs meet each of these conditions, but none meets all"),
    ],
)
def test_the_condition_that_no_run_meets_is_named(tmp_path, conditions, why):
    (tmp_path / "runs.csv").write_text("model,task,success\noak,t1,1\noak,t2,1\nelm,t1,0\n")
    with pytest.raises(SourceError, match=f"; {why}$"):
        evalkit.load(str(tmp_path), where=conditions)


@pytest.mark.parametrize("kind", messy.KINDS)
def test_a_cluster_is_the_family_of_tasks_and_leaves_tasks_and_estimates_as_they_are(kind):
    source = str(messy.folder(kind) / "logs")
    runs = evalkit.load(source, kind, cluster="kind").runs
    plain = evalkit.load(source, kind).runs
    assert set(outcomes(runs).table["family"]) == {kind}
    assert outcomes(runs).table["task"].equals(outcomes(plain).table["task"])
    assert rates(runs)["estimate"].equals(rates(plain)["estimate"])
    found, expected = pairs(runs), pairs(plain)
    # tasks that only one of two models ran are left out if their family has shared ones
    shared = [not {"partly_shared", "unpaired"} & {one.code for one in row.notes} for row in expected["warning"]]
    assert found["estimate"][shared].tolist() == pytest.approx(expected["estimate"][shared].tolist(), nan_ok=True)
    unknown = runs.assign(cluster=None)  # its task stands for a run without one
    assert outcomes(unknown).table["family"].equals(outcomes(plain).table["task"])
    with pytest.raises(SourceError, match="cluster 'modelname': runs have no such column; did you mean 'model_name'"):
        evalkit.load(source, kind, cluster="modelname")


def test_any_column_of_a_table_can_be_the_family_also_one_that_means_nothing_or_is_called_as_one_of_evalkit(tmp_path):
    rows = [f"m,t{task},kind{task % 3},topic{task % 4},{task % 2}" for task in range(12)]
    (tmp_path / "runs.csv").write_text("\n".join(["model,task,task_type,topic,score", *rows]))
    for column, names in (("topic", ["topic0", "topic1"]), ("task_type", ["kind0", "kind1"])):
        runs = evalkit.load(str(tmp_path), cluster=column).runs
        assert runs["cluster"].head(2).tolist() == names
        row = rates(runs).iloc[0]
        assert (row["estimate"], row["n_tasks"]) == (0.5, 12)
        assert f"{len(set(runs['cluster']))}" in str(row["warning"])
    with pytest.raises(SourceError, match="did you mean 'topic'"):
        evalkit.load(str(tmp_path), cluster="topik")


def test_clusters_and_conditions_take_the_columns_of_a_table_by_their_own_names_also_those_with_a_meaning(tmp_path):
    rows = [f"{model},t{task},{task % 3},lane{task % 2},{task},{task % 2}" for model in "ab" for task in range(12)]
    (tmp_path / "runs.csv").write_text("\n".join(["model,task,checkpoint,lane,length,score", *rows]))
    assert set(evalkit.load(str(tmp_path), cluster="checkpoint").runs["cluster"]) == {"0", "1", "2"}
    for where, count in (("checkpoint=1", 8), ("lane=lane1", 12), ("length>=9", 6), ("task=t3", 2)):
        assert len(evalkit.load(str(tmp_path), where=where).runs) == count
    with pytest.raises(SourceError, match="lane can't be compared this way"):
        evalkit.load(str(tmp_path), where="lane>2")


@pytest.mark.parametrize(
    ("where", "left"),
    [
        ("experiment!=second", 4),
        ("experiment=second", 4),
        ("limits>=2", 4),
        ("seed!=7", 4),  # not the checkpoints, which the runs' column of this name has
        ("run_id!=lab-3", 7),  # the log's own id
        ("run_id=lab-3", 1),
        ("limits!=", 6),
    ],
)
def test_a_condition_takes_a_column_of_the_log_where_the_runs_know_no_value_of_that_name(tmp_path, where, left):
    rows = []
    for n in range(8):
        experiment = "first" if n < 4 else "second"
        rows.append(f"lab-{n},{'xy'[n % 2]},q{n // 2},{experiment},{n // 2 or ''},step{n},{n % 2 + 7},{n % 3 % 2}")
    (tmp_path / "runs.csv").write_text(
        "\n".join(["trial_id,model,task,experiment,limits,checkpoint,seed,solved", *rows])
    )
    assert len(evalkit.load(str(tmp_path), where=where).runs) == left


@pytest.mark.parametrize("where", ["experiment!=third", "run_id!=lab-9", "temperature!=0", "model_name!=z"])
def test_a_condition_that_excludes_no_run_is_a_warning(tmp_path, where):
    (tmp_path / "runs.csv").write_text("run_id,model,task,experiment,solved\nlab-1,x,q,first,1\nlab-2,y,q,second,0\n")
    with pytest.warns(UserWarning, match=f"--where {where} excludes no run; of {where.partition('!')[0]} there "):
        assert len(evalkit.load(str(tmp_path), where=where).runs) == 2


def test_a_task_in_two_families_is_refused_with_their_names(tmp_path):
    rows = ["a,t0,easy,1", "b,t0,hard,0", "a,t1,easy,1", "b,t1,easy,0"]
    (tmp_path / "runs.csv").write_text("\n".join(["model,task,level,score", *rows]))
    with pytest.raises(SourceError, match="cluster 'level': task t0 is in 2 families, easy, hard"):
        evalkit.load(str(tmp_path), cluster="level")


@pytest.mark.parametrize(("kind", "later"), [("mindcraft", "messages"), ("crafter", "events")])
def test_two_names_become_one_model_in_all_frames_also_in_those_built_later(kind, later):
    source = messy.folder(kind) / "logs"
    before = evalkit.load(source, kind)
    logs = pickle.loads(pickle.dumps(evalkit.load(source, kind, rename=[f"{messy.ONE}={messy.TWO}"])))
    for name in ("runs", later):
        assert getattr(logs, name)["model_name"].equals(
            getattr(before, name)["model_name"].replace(messy.ONE, messy.TWO)
        )
    with pytest.warns(UserWarning, match=f"no run of model 'no-scor'; did you mean '{messy.NONE}'"):
        evalkit.load(source, kind, rename=["no-scor=b"])


def test_runs_without_a_model_get_the_one_that_is_stated():
    runs = evalkit.steps.load("samples:steps", model="m").runs
    assert (set(runs["model_name"]), set(runs["model_source"])) == ({"m"}, {"stated"})


@pytest.mark.parametrize("rename", [["a=b", "c=d=e"], {"a": "b", "c": "d=e"}])
def test_a_renaming_is_a_mapping_or_a_list_of_texts(rename):
    assert renames_of(rename) == {"a": "b", "c": "d=e"}
    assert renames_of("a=b") == {"a": "b"}
    for wrong in ("a", "=b", "a="):
        with pytest.raises(SourceError, match="write OLD=NEW"):
            renames_of([wrong])


def crafter_folders(tmp_path, *models):
    paths = []
    for place, model in enumerate(models):
        path = tmp_path / f"prompt{place}"
        path.mkdir()
        write(path, messy.played(model, hook("invalid_action"), world=f"w{place}"))
        paths.append(str(path))
    return paths


@pytest.mark.parametrize(
    ("models", "rename", "names"),
    [
        (("m", "m"), [], ["prompt0", "prompt1"]),  # one model each, of one name
        (("m", "m", "n"), [], ["prompt0", "prompt1", "prompt2"]),
        (("m", "n"), [], ["m", "n"]),  # they have names of their own
        (("m", "m"), ["m=n"], ["n", "n"]),  # the user names them by the names in their logs
    ],
)
def test_models_of_one_name_in_folders_of_their_own_are_named_by_folder(tmp_path, models, rename, names):
    sources = crafter_folders(tmp_path, *models)
    logs = evalkit.load(sources, "crafter", rename=rename)
    assert ("named_by_folder" in logs.chosen) == ("prompt0" in names)
    assert sorted(logs.runs["model_name"]) == names
    assert sorted(logs.events["model_name"].unique()) == sorted(set(names))


@pytest.mark.parametrize(
    ("models", "same_tasks", "form", "names"),
    [
        ("tt", True, "zip", ["new.zip", "old.zip"]),
        ("tt", False, "zip", ["new.zip", "old.zip"]),
        ("tu", True, "zip", ["t", "u"]),
        ("tt", True, "glob", ["new", "old"]),
        ("tt", False, "glob", ["t"]),  # parts of one evaluation
        ("tu", True, "glob", ["t", "u"]),
        ("Tt", True, "glob", ["T", "t"]),
        (("", ""), True, "glob", ["new", "old"]),  # without a column of models
        (("", ""), False, "glob", ["unknown"]),
    ],
)
def test_archives_and_folders_of_a_glob_are_named_like_folders(tmp_path, models, same_tasks, form, names):
    for place, (name, model) in enumerate(zip(("old", "new"), models, strict=True)):
        tasks = [f"q{n + 9 * (not same_tasks) * place}" for n in range(4)]
        rows = [f"{model},{task},{int(n < 3 - place)}" for n, task in enumerate(tasks)]
        if model == "T":
            rows += [f"t,{task},1" for task in tasks]
        (tmp_path / "logs" / name).mkdir(parents=True)
        text = "\n".join(["model,task,passed", *rows])
        (tmp_path / "logs" / name / "runs.csv").write_text(text if model else re.sub(r"^\w*,", "", text, flags=re.M))
        shutil.make_archive(str(tmp_path / name), "zip", tmp_path / "logs" / name)
    source = (
        str(tmp_path / "logs" / "*") if form == "glob" else [str(tmp_path / f"{one}.zip") for one in ("old", "new")]
    )
    logs = evalkit.load(source)
    assert sorted(logs.runs["model_name"].unique()) == names
    assert ("named_by_folder" in logs.chosen) == (len(names) == 2 and len(set(models)) == 1)


@pytest.mark.parametrize(("form", "n_runs", "names"), [("csv", 3, ["0.csv", "1.csv"]), ("traj", 1, ["unknown"])])
def test_files_of_a_glob_without_models_are_compared_unless_each_is_one_run(tmp_path, form, n_runs, names):
    for place in range(2):
        text = "\n".join(["task,passed", *(f"t{task},{place}" for task in range(n_runs))])
        if form == "traj":
            info = {"exit_status": "Submitted", "model_stats": {}}
            text = json.dumps({"messages": [], "info": info, "instance_id": "a__a-1"})
        (tmp_path / f"{place}.{form}").write_text(text)
    logs = evalkit.load(str(tmp_path / "*"))
    assert sorted(logs.runs["model_name"].unique()) == names
    compared = evalkit.load(str(tmp_path / "*"), compare_by="source").chosen
    assert not {"no_model", "sources_merged"}.intersection(note.code for note in compared.notes)


@pytest.mark.parametrize(
    ("models", "names", "codes"),
    [
        (("", ""), ["east.csv", "west.csv"], ["columns", "named_by_folder"]),
        (("pine,fir", "pine,fir"), ["fir", "pine"], ["columns", "sources_merged"]),
        (("pine,fir", "fir"), ["fir", "pine"], ["columns", "sources_merged"]),
        (("pine,fir", "yew"), ["fir", "pine", "yew"], ["columns"]),
    ],
)
def test_sources_with_runs_of_the_same_models_are_named_or_noted(tmp_path, models, names, codes):
    paths = [tmp_path / "east.csv", tmp_path / "west.csv"]
    for place, own in enumerate(models):
        rows = [(model, f"t{task}", (task + place) % 2) for model in own.split(",") for task in range(3)]
        table = pd.DataFrame(rows, columns=["model", "task", "solved"])
        if not own:
            table = table.drop(columns="model")
        table.to_csv(paths[place], index=False)
    logs = evalkit.load(list(map(str, paths)))
    assert sorted(set(logs.runs["model_name"])) == names
    assert sorted({one.code for one in logs.chosen.notes}) == codes


def wins(path, models, won) -> str:
    """Write a table in which every model won so many of 4 tasks."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [(model, f"t{task}", int(task < won)) for model in models for task in range(4)]
    pd.DataFrame(rows, columns=["model", "task", "solved"]).to_csv(path, index=False)
    return str(path)


def test_sources_that_share_models_are_compared_by_the_option_that_their_note_names(tmp_path):
    sources = [
        wins(tmp_path / f"{name}/run/log.csv", ["pine", "fir"], won) for name, won in (("kind", 3), ("stern", 1))
    ]
    (merged,) = evalkit.load(sources).chosen.only("sources_merged").notes
    option = str(merged).partition("--compare-by ")[2].split()[0]
    logs = evalkit.load(sources, compare_by=option)
    rates = logs.runs.groupby("model_name")["success_rate"].mean().to_dict()
    assert rates == {
        f"{m} · {name} · run · log.csv": won for m in ("pine", "fir") for name, won in (("kind", 0.75), ("stern", 0.25))
    }
    assert "sources_merged" not in logs.chosen


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["kind", "stern"], {"kind", "stern"}),
        (["a/run", "b/run", "c"], {"a · run", "c"}),
        (["p/q", "r/q", "p/s", "r/s"], {"p · q", "r · s"}),
        (["-home-jane-thesis", "notes"], {"project-dbdefa", "notes"}),  # as pages and reports name it
    ],
)
def test_names_from_sources_differ_in_more_than_a_provider(tmp_path, paths, names):
    for place, path in enumerate(paths):
        wins(tmp_path / path / "log.csv", ["solo"], place)
    sources = [str(tmp_path / path) for path in paths]
    logs = evalkit.load(sources)
    assert names <= set(logs.runs["model_name"])
    assert logs.runs["model_name"].nunique() == len(paths)
    assert "Perhaps one model" not in CliRunner().invoke(main, ["compare", *sources]).output


OWN, SPLIT, MERGED = "named_by_folder", "compared_by_folder", "sources_merged"
FOLDERS = {  # by case: models and tasks in each file, the sources, the names of models, and the notes
    "one model each": ({"a/r.csv": ("fir", "pq"), "b/r.csv": ("fir", "pq")}, "a b", "a b", OWN),
    "one model each, of other tasks": ({"a/r.csv": ("fir", "pq"), "b/r.csv": ("fir", "st")}, "a b", "a b", OWN),
    "one model each, of other names": ({"a/r.csv": ("fir", "pq"), "b/r.csv": ("yew", "pq")}, "a b", "fir yew", ""),
    "several models": (
        {"a/r.csv": ("fir yew", "pq"), "b/r.csv": ("yew fir", "qs")},
        "a b", "fir·a fir·b yew·a yew·b", SPLIT,
    ),
    "one in both": ({"a/r.csv": ("fir yew", "p"), "b/r.csv": ("fir box", "p")}, "a b", "box fir·a fir·b yew", SPLIT),
    "one and several": ({"a/r.csv": ("fir", "pq"), "b/r.csv": ("fir box", "pq")}, "a b", "box fir·a fir·b", SPLIT),
    "other tasks": ({"a/r.csv": ("fir yew", "pq"), "b/r.csv": ("fir yew", "st")}, "a b", "fir yew", MERGED),
    "the same task of one model": (
        {"a/r.csv": ("fir yew", "p"), "a/s.csv": ("yew", "q"), "b/r.csv": ("fir", "s"), "b/s.csv": ("yew", "q")},
        "a b", "fir yew·a yew·b", f"{SPLIT} {MERGED}",
    ),
    "files": ({"a.csv": ("fir", "pq"), "b.csv": ("fir", "pq")}, "a.csv b.csv", "fir", MERGED),
    "files of two models": ({"a.csv": ("fir yew", "p"), "b.csv": ("fir yew", "p")}, "a.csv b.csv", "fir yew", MERGED),
    "a folder and a file": ({"a/r.csv": ("fir yew", "p"), "b.csv": ("fir", "p")}, "a b.csv", "fir yew", MERGED),
    "three folders, two of the same tasks": (
        {"a/r.csv": ("fir yew", "p"), "b/r.csv": ("fir yew", "p"), "c/r.csv": ("fir box", "s")},
        "a b c", "box fir·a fir·b fir·c yew·a yew·b", SPLIT,
    ),
    "a folder twice": ({"a/r.csv": ("fir yew", "pq")}, "a ./a", "fir yew", ""),
    "a folder in another": ({"a/r.csv": ("fir yew", "p"), "a/b/r.csv": ("fir yew", "p")}, "a/b a", "fir yew", ""),
    "folders of one name": (
        {"a/logs/r.csv": ("fir yew", "p"), "b/logs/r.csv": ("fir", "p")},
        "a/logs b/logs/", "fir·a·logs fir·b·logs yew", SPLIT,
    ),
    "one folder begins like another": (
        {"a/r.csv": ("fir yew", "p"), "ab/r.csv": ("fir yew", "p")}, "ab a", "fir·a fir·ab yew·a yew·ab", SPLIT,
    ),
    "a glob is several folders": (
        {"a1/r.csv": ("fir yew", "p"), "a2/r.csv": ("fir", "p"), "b/r.csv": ("box", "p")},
        "a* b", "box fir·a1 fir·a2 yew", SPLIT,
    ),
}  # fmt: skip


@pytest.fixture(params=FOLDERS)
def folders(request, tmp_path, monkeypatch):
    """Write the tables of a case below the current folder; return the sources, names and codes."""
    files, sources, names, codes = FOLDERS[request.param]
    monkeypatch.chdir(tmp_path)
    for path, (models, tasks) in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        rows = [(model, task, int(task > "p")) for model in models.split() for task in tasks]
        pd.DataFrame(rows, columns=["model", "task", "solved"]).to_csv(path, index=False)
    return sources.split(), [name.replace("·", " · ") for name in names.split()], set(codes.split())


def test_models_that_ran_a_task_in_several_folders_are_compared_by_folder(folders):
    sources, names, codes = folders
    logs = evalkit.load(sources)
    assert sorted(set(logs.runs["model_name"])) == names
    assert {one.code for one in logs.chosen.notes} & {OWN, SPLIT, MERGED} == codes


def test_folders_count_together_by_the_option_that_the_first_line_names(folders):
    sources, *_ = folders
    for one in evalkit.load(sources).chosen.only(OWN, SPLIT).notes:
        option = str(one).partition("--compare-by ")[2].split()[0]
        runs = evalkit.load(sources, compare_by=option).runs
        assert set(runs["model_name"]) == set(pd.concat(map(pd.read_csv, runs["source"].unique()))["model"])


def test_every_command_compares_two_folders_alike(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, won in (("old", 1), ("new", 3)):
        wins(tmp_path / name / "log.csv", ["pine", "fir"], won)
    said = "Several folders contain runs of fir and pine on the same tasks, so these are compared by folder; "
    for command in ("compare", "trajectories", "trajectories --list all", "audit", "failures"):
        out = CliRunner().invoke(main, [*command.split(), "old", "new"]).output
        assert out.startswith(f"{said}--compare-by model_name counts them together.\n"), command
        together = CliRunner().invoke(main, [*command.split(), "old", "new", "--compare-by", "model_name"]).output
        assert together.startswith("Runs of fir and pine from several sources count together; "), command
    followed = Following(kind_named("trajectories"), ["old", "new"], {}).look().text
    assert followed.startswith(said)
    assert "pine · new" in followed


@pytest.mark.parametrize(
    ("rename", "names"),
    [
        (["fir=oak"], ["oak · a", "oak · b", "yew · a", "yew · b"]),
        (["fir=yew"], ["yew · a", "yew · b"]),
        (["none=oak"], ["fir · a", "fir · b", "yew · a", "yew · b"]),
    ],
)
@pytest.mark.filterwarnings("ignore:--rename none")
def test_models_are_renamed_before_they_are_compared_by_folder(tmp_path, rename, names):
    sources = [str(Path(wins(tmp_path / name / "log.csv", ["fir", "yew"], 2)).parent) for name in "ab"]
    assert sorted(set(evalkit.load(sources, rename=rename).runs["model_name"])) == names


def test_folders_that_share_models_of_different_agents_are_compared_by_agent(tmp_path):
    sources = []
    for name, agent in (("a", "walker"), ("b", "diver")):
        path = Path(wins(tmp_path / name / "log.csv", ["fir", "yew"], 2))
        pd.read_csv(path).assign(agent=agent).to_csv(path, index=False)
        sources.append(str(path.parent))
    assert "walker · fir" in set(evalkit.load(sources).runs["model_name"])


def test_copies_of_the_runs_of_a_folder_are_not_compared_with_them(tmp_path):
    sources = []
    for name in "ab":
        path = Path(wins(tmp_path / name / "log.csv", ["fir", "yew"], 2))
        pd.read_csv(path).assign(run_id=range(8)).to_csv(path, index=False)
        sources.append(str(path.parent))
    assert set(evalkit.load(sources).runs["model_name"]) == {"fir", "yew"}


def test_a_dataset_of_several_folders_names_models_as_the_folders_do(tmp_path):
    sources = crafter_folders(tmp_path, "m", "m")
    evalkit.crafter.collect(sources, tmp_path / "made")
    logs = evalkit.load(tmp_path / "made", "crafter")
    assert sorted(logs.runs["model_name"]) == ["prompt0", "prompt1"]
    assert "named_by_folder" in logs.chosen


@pytest.mark.parametrize(
    ("where", "missing"),
    [
        ([], 3),
        (["task_id=t0"], 0),  # one of two planned trials of three tasks, as the lock of the job says
        (["task_id!=t0"], 3),
        (["score>=0"], 0),  # a plan does not tell
    ],
)
def test_trials_that_a_condition_leaves_out_are_not_missing_from_the_plan(where, missing):
    plans = pd.DataFrame({
        "source": "job/lock.json", "model_name": "m", "task_type": "d", "task_id": ["t0", "t1", "t2"],
        "planned": 2, "retried": 0,
    })  # fmt: skip
    runs = pd.DataFrame({"run_id": ["a", "b", "c"], "task_id": ["t0", "t0", "t1"], "score": [0.0, 1.0, 1.0]})
    kind = kind_named("trajectories")
    kept = select_runs(Assembled({"runs": runs, "plans": plans}), kind, where, "").frames
    assert kept["plans"]["planned"].sum() - (len(kept["runs"]) if len(kept["plans"]) else 0) == missing


def test_folders_that_name_models_can_be_renamed(tmp_path):
    sources = crafter_folders(tmp_path, "m", "m")
    runs = evalkit.load(sources, "crafter", rename=["prompt0=old", "prompt1=new"]).runs
    assert sorted(runs["model_name"]) == ["new", "old"]


@pytest.mark.parametrize("more", [[], ["--model", "m"]])
def test_a_column_that_may_name_the_models_is_named_also_if_folders_or_the_user_name_them(tmp_path, more):
    for folder in ("old", "new"):
        rows = "".join(f"t{task},{engine},{task % 2}\n" for task in range(6) for engine in ("oak", "elm"))
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "runs.csv").write_text(f"task,Engine of this team,resolved\n{rows}")
    line = ["compare", str(tmp_path / "old"), str(tmp_path / "new"), *more]
    shown = CliRunner().invoke(main, line).output
    assert "not used: Engine of this team (2 values)" in shown.partition("rank")[0]
    assert "--column model='Engine of this team'" in shown


def test_the_folders_of_a_remote_glob_are_listed_once_and_name_the_models(monkeypatch):
    files = fsspec.filesystem("memory")
    for folder in ("one", "two"):
        row = {"model": "m", "task": "t", "success": folder == "one"}
        files.pipe(f"/listed-once/{folder}/runs.jsonl", json.dumps(row).encode())
    patterns = []
    glob = sources.glob_remote
    monkeypatch.setattr(sources, "glob_remote", lambda pattern: patterns.append(pattern) or glob(pattern))
    runs = evalkit.load("memory://listed-once/*", "trajectories").runs
    assert sorted(runs["model_name"]) == ["one", "two"]
    assert len(patterns) == 1
