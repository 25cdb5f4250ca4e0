import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.io import plain
from evalkit.io.text import distinct_names, short_paths

NAMES = st.lists(st.text(alphabet="ab…\x1b\x07 (2)", max_size=12), unique=True, max_size=8)
PATHS = st.lists(st.lists(st.sampled_from("ab"), min_size=1, max_size=4).map("/".join), unique=True, max_size=8)


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["/x/run_1/h.json", "/x/run_2/h.json"], ["run_1/h.json", "run_2/h.json"]),
        (["/a/x/h.json", "/b/x/h.json", "/b/y/h.json", "/k.json"], ["a/x/h.json", "b/x/h.json", "y/h.json", "k.json"]),
        (["h.json", "a/h.json"], ["h.json", "a/h.json"]),
        ([], []),
        ([""], [""]),
        (["", "a/"], ["", "a/"]),
    ],
)
def test_a_file_is_named_by_the_shortest_path_that_tells_it_apart(paths, names):
    assert short_paths(paths) == dict(zip(paths, names, strict=True))


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["alder", "birch"], ["alder", "birch"]),
        (["a" * 12 + "1"], ["aaaa…aa1"]),
        (["x" * 8 + "1" + "y" * 8, "x" * 8 + "2" + "y" * 8], ["xxxxxxxx1yyyyyyyy", "xxxxxxxx2yyyyyyyy"]),
        (
            ["x" * 40 + "1" + "y" * 40, "x" * 40 + "2" + "y" * 40],
            ["x" * 16 + "…" + "y" * 15, "x" * 16 + "…" + "y" * 15 + " (2)"],
        ),
        (["a\x1b", "a\x07", "b"], ["a\ufffd", "a\ufffd (2)", "b"]),
    ],
)
def test_labels_are_plain_short_and_tell_names_apart(names, shown):
    assert distinct_names(names, 8) == dict(zip(names, shown, strict=True))


@given(NAMES)
def test_different_names_never_look_the_same(names):
    shown = distinct_names(names, 5)
    assert len(set(shown.values())) == len(names)
    assert all(text == plain(text) for text in shown.values())


@given(PATHS)
def test_different_files_never_have_the_same_name(paths):
    names = short_paths(paths)
    assert len(set(names.values())) == len(paths)
    assert all(f"/{path}".endswith(f"/{name}") for path, name in names.items())
