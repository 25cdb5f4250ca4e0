"""MineCollab's names: the frames that promise them have them, and the frame of runs has each column once."""

from evalkit.mindcraft import aggregate_results, load, runs_df
from evalkit.mindcraft.table import RUNS
from tests.mindcraft.builders import SCORE, log, task, write_all

FILES = {
    "x/m/full/Andy_0_0.json": 1,
    "x/m/half/Andy_0_0.json": 0.5,
    "x/m/none/Andy_0_0.json": None,
    "x/m/odd/Andy_0_0.json": 150,
    "x/m/late/Andy_0_0.json": log("Task timeout reached", f"{SCORE}1"),
}
NAMES = ["task_id", "overall_raw_score", "overall_score", "overall_is_successful", "overall_is_completed",
         "overall_completion_status", "flag_score_out_of_range"]  # fmt: skip
EXPECTED = [
    ("full", 1.0, 1.0, True, True, "SUCCESS", False),
    ("half", 0.5, 0.5, False, True, "FAILED_PARTIAL_SCORE", False),
    ("late", 1.0, 1.0, True, True, "TIMED_OUT", False),
    ("none", None, None, False, False, "NO_SCORE_LOGGED", False),
    ("odd", 150.0, None, False, False, "FAILED_PARTIAL_SCORE", True),
]


def test_frames_with_the_names_of_minecollab_have_their_values(tmp_path):
    root = write_all(tmp_path, FILES)
    tasks = {name: task(agent_count=1) for name, *_ in EXPECTED}
    for runs in (runs_df(root, tasks), aggregate_results(sorted(root.glob("x/m/*")), tasks)):
        rows = runs[NAMES].astype("object").where(runs[NAMES].notna(), None)
        assert list(rows.itertuples(index=False, name=None)) == EXPECTED
        assert runs["message_count"].equals(runs["turns"])


def test_the_frame_of_runs_has_each_column_once(tmp_path):
    runs = load(write_all(tmp_path, FILES)).runs
    assert list(runs) == [column.name for column in RUNS]
    assert [name for name in runs if name.startswith(("overall_", "flag_"))] == []
