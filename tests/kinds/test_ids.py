import shutil

import pandas as pd
import pytest

import evalkit
from evalkit.io import resolve
from evalkit.kinds import find_runs

SAMPLES = {
    "mindcraft": "samples:mindcraft/runs",
    "crafter": "samples:crafter",
    "steps": "samples:steps",
    "trajectories": "samples:trajectories/harbor",
}


def ids(source):
    runs = evalkit.load(source).runs.sort_values(["source", "repetition"])
    assert runs["run_id"].is_unique
    return runs["run_id"].reset_index(drop=True)


@pytest.mark.parametrize("kind", SAMPLES)
def test_runs_are_found_after_a_move_a_new_name_and_in_archives(kind, tmp_path):
    here, moved = shutil.copytree(resolve(SAMPLES[kind]), tmp_path / "ann" / "runs"), tmp_path / "bob" / "own"
    before = ids(here)
    archives = [
        shutil.make_archive(str(tmp_path / "within"), "zip", here),
        shutil.make_archive(str(tmp_path / "above"), "zip", here.parent, "runs"),
    ]
    shutil.copytree(here, moved)
    for other in (moved, *archives):
        now = ids(other)
        assert not set(before) & set(now)
        assert find_runs(before, now).equals(now.astype("object"))
    assert find_runs(before, ids([here, moved])).notna().all()  # of two equal copies, those in the same place
    shown = [[turn.text for turn in evalkit.load(folder).show(before[0]).turns] for folder in (here, moved)]
    assert shown[0] == shown[1]


def test_a_run_that_grew_in_its_place_is_found_and_a_like_named_run_elsewhere_is_not(tmp_path):
    def table(folder, rows):
        (tmp_path / folder).mkdir(exist_ok=True)
        text = "task,model,score,seconds\n" + "".join(f"t{row},m,1,{row}\n" for row in range(rows))
        (tmp_path / folder / "runs.csv").write_text(text)
        return ids(tmp_path / folder)

    first, grown, other = table("a", 5), table("a", 6), table("b", 6)
    assert find_runs(first, grown).tolist() == grown.tolist()[:5]
    assert find_runs(first, other).isna().all()
    assert find_runs(grown, other).notna().all()
    assert find_runs(pd.Series(["", "own-1", "a" * 20, None]), other).isna().all()
    assert find_runs(pd.Series(["q-5"]), pd.Series(["q-1"])).isna().all()  # ids that a kind makes itself


def test_a_few_runs_that_look_the_same_do_not_make_a_moved_folder():
    others = pd.Series([f"t-{place:08x}{place:08x}" for place in range(100, 120)])
    known = pd.Series([f"t-{place:08x}{place:08x}" for place in range(20)])
    alike = pd.Series([*others[3:], *(f"t-{place:08x}{place - 50:08x}" for place in range(50, 53))])
    assert find_runs(alike, known).isna().all()
    assert find_runs(alike[-9:], known).count() == 3  # a third
