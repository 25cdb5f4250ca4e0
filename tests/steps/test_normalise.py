import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.steps import load, normalise_history
from evalkit.steps.normalise import normalise_record, unique_labels
from tests.steps.cases import CELLS, A, B, C


@pytest.mark.parametrize(
    ("record", "shape", "kind", "index"), [(A, "A", "text", 3), (B, "B", "structured", 3), (C, "C", "text", 0)]
)
def test_three_shapes_become_one(record, shape, kind, index):
    found = normalise_history([record])[0]
    assert (found["shape"], found["result_type"], found["step_index"]) == (shape, kind, index)
    assert found["result"] == CELLS
    assert found["step"]["function_name"] == "process_cells"
    assert found["success"] is True


@pytest.mark.parametrize("record", [A, B, C])
def test_normalising_twice_changes_nothing(record):
    once = normalise_record(record)
    assert normalise_record(once) == once


@pytest.mark.parametrize(
    ("value", "success"),
    [(True, True), ("True", True), ("false", False), (1, True), (0, False), (None, None), ("maybe", None), ([], None)],
)
def test_success_is_read_from_what_writers_emit_and_never_guessed(value, success):
    assert normalise_record({"function_name": "f", "success": value})["success"] is success


@pytest.mark.parametrize(
    ("record", "truncated"),
    [
        ({**C, "result_summary": "x" * 500}, [None, 500]),
        ({**C, "result_summary": "x" * 499}, None),
        ({**C, "function_name": "display_x", "result_summary": "<div>" + "x" * 495}, [None, 500]),
        ({**A, "result": "x" * 500}, [None, 500]),
        ({**A, "step": {"function_name": "display_x"}, "result": "<div>" + "x" * 495}, None),  # plots are whole in A
        ({**B, "result": "x" * 500}, None),  # a structured text is whole
        ({**B, "result_type": "text", "result": "x" * 500}, [None, 500]),
        ({**B, "result_type": "text", "result": "x" * 500, "result_metadata": {"length": 500}}, None),
        ({**B, "result_type": "text", "result": "x" * 500, "result_metadata": {"truncated": [900, 500]}}, [900, 500]),
    ],
)
def test_what_counts_as_cut(record, truncated):
    assert normalise_record(record)["result_metadata"].get("truncated") == truncated


def test_without_an_index_a_retry_keeps_its_steps():
    calls = [("a", True), ("b", False), ("b", False), ("b", True), ("b", True), ("c", True)]
    records = [{"function_name": f, "parameters": {}, "success": s} for f, s in calls]
    assert [record["step_index"] for record in normalise_history(records)] == [0, 1, 1, 1, 2, 3]


def test_parameters_written_as_text_are_read():
    assert normalise_record({**C, "parameters": "{'n': '354'}"})["step"]["parameters"] == {"n": "354"}


LABELS = [
    # (source, thread) of each history: the labels
    ([("/a/h.json", "")], ["h.json"]),
    ([("/a/h.json", ""), ("/a/g.json", "")], ["h.json", "g.json"]),
    ([("/r/run_01/h.json", ""), ("/r/run_02/h.json", "")], ["run_01/h.json", "run_02/h.json"]),
    ([("/r/a/out/h.json", ""), ("/r/b/out/h.json", ""), ("/r/g.json", "")], ["a/out/h.json", "b/out/h.json", "g.json"]),
    ([("/r/a/x/h.json", ""), ("/r/b/x/h.json", ""), ("/r/c/h.json", "")], ["a/x/h.json", "b/x/h.json", "c/h.json"]),
    ([("h.json", ""), ("a/h.json", "")], ["h.json", "a/h.json"]),  # one path is the end of the other
    ([("s3://b/1/h.json", ""), ("s3://b/2/h.json", "")], ["1/h.json", "2/h.json"]),
    ([("/a/c.db", "t1"), ("/a/c.db", "t2")], ["c.db · t1", "c.db · t2"]),
    ([("/a/c.db", "t"), ("/b/c.db", "t")], ["a/c.db · t", "b/c.db · t"]),
    ([("/a/c.db · t", ""), ("/a/c.db", "t")], ["c.db · t", "c.db · t #2"]),
    ([("", "")], [""]),
    ([("/a/caf\udce9.json", "")], ["caf\\udce9.json"]),
    ([("/a/h.json", ""), ("/a/h.json", "")], ["h.json"]),  # the same history
]


@pytest.mark.parametrize(("histories", "labels"), LABELS)
def test_a_label_is_the_shortest_path_that_tells_histories_apart(histories, labels):
    assert list(unique_labels(histories).values()) == labels


PARTS = st.lists(st.sampled_from(["a", "b", "run", ""]), min_size=1, max_size=4).map("/".join)


@given(st.lists(st.tuples(PARTS, st.sampled_from(["", "t", "u"])), max_size=8))
def test_different_histories_never_have_one_label(histories):
    labels = unique_labels(histories)
    assert set(labels) == set(histories)
    assert len(set(labels.values())) == len(labels)
    for (source, thread), label in labels.items():
        assert source.endswith(label.split(" #")[0].removesuffix(f" · {thread}"))


def test_the_labels_of_a_load_are_those_of_its_frames(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "h.json").write_text('[{"function_name": "f", "success": true, "result_summary": "x"}]')
    for source, labels in ((tmp_path, ["a/h.json", "b/h.json"]), (tmp_path / "a", ["h.json"])):
        logs = load(source)
        assert [history.label for history in logs.histories] == labels
        assert logs.steps["history"].tolist() == logs.checks["history"].unique().tolist() == labels
