import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.steps import load
from evalkit.steps.labels import unique_labels

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
