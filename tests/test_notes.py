"""Notes on results: codes for code, texts for readers, and nothing in between."""

import copy
import pickle
import string
from inspect import signature

import numpy as np
import pandas as pd
import pytest

from evalkit._words import TEXTS, Notes, left_out, note
from evalkit.display.tables import table_html
from evalkit.io.write import write_frame
from evalkit.stats import estimate_by

HOSTILE = 'a; {b} (c): "d" <e>\n%s'


def test_notes_are_asked_for_codes_and_say_their_text():
    notes = note("one_value") + left_out(2, "row") + note("one_value")
    assert [code in notes for code in ("left_out", "no_values")] == [True, False]
    assert str(notes) == "a single value has no interval; 2 rows left out as missing"
    assert str(notes.without("one_value")) == "2 rows left out as missing"
    assert str(notes.worded({"left_out": "left out: {count} aborted"})).endswith("; left out: 2 aborted")
    assert (bool(left_out(0, "row")), Notes() + Notes(), str(Notes())) == (False, Notes(), "")


def test_a_value_of_a_note_is_never_read_as_a_template_nor_split():
    assert str(note("unmeasured", model=HOSTILE)).count(HOSTILE) == 1
    assert len((note("one_value") + note("unmeasured", model=HOSTILE)).notes) == 2


@pytest.mark.parametrize("code", TEXTS)
def test_every_text_can_be_made(code):
    text = TEXTS[code]
    names = signature(text).parameters if callable(text) else {name for _, name, _, _ in string.Formatter().parse(text)}
    values = dict.fromkeys(set(names) - {None}, 3)
    values |= {name: [("a", "b"), ("c", "d")] for name in ("sets", "pairs") if callable(text) and name in values}
    values |= {name: ["a", "b"] for name in ("models", "names") if name in values}
    values |= {"models": [("a", 1, 2)]} if code == "not_measured" else {}
    values |= {"conditions": ["depth=1", ""]} if "conditions" in values else {}
    values |= {"pairs": [("a", "b", 3)]} if code == "copied" else {}
    assert str(note(code, **values))


def test_results_with_notes_survive_pickling_and_copying():
    table = estimate_by(pd.DataFrame({"m": ["a", "b"], "x": [1.0, np.nan]}), "m", "x")
    for again in (pickle.loads(pickle.dumps(table)), copy.deepcopy(table)):
        pd.testing.assert_frame_equal(again, table)
        assert again["warning"].tolist() == table["warning"].tolist()


@pytest.mark.parametrize("suffix", ["csv", "json", "parquet"])
def test_files_and_tables_get_the_text(tmp_path, suffix):
    table = estimate_by(pd.DataFrame({"m": ["a", "b"], "x": [1.0, np.nan]}), "m", "x")
    write_frame(table, str(tmp_path / f"t.{suffix}"))
    texts = ["fewer than 15 values: a rough interval", "no values; 1 value left out as missing"]
    assert getattr(pd, f"read_{suffix}")(tmp_path / f"t.{suffix}")["warning"].tolist() == texts
    assert all(
        text in table_html(table, "", digits=2, percent=True, rows=9, estimate="", counted="")[0] for text in texts
    )
