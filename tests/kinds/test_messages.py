import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.kinds.messages import message_pattern

PATTERNS = {
    "No cells of type 'B' in /data/run7.h5ad": "No cells of type '…' in …",
    "No cells of type 'T cell' in data/run8.h5ad": "No cells of type '…' in …",
    "'leiden'": "'leiden'",
    "'No cells of type B were found in 12 rows'": "'No cells of type B were found in # rows'",
    "\"No cells of type 'Mega' found in 12 rows\"": "\"No cells of type '…' found in # rows\"",
    "Expected [1, 0], got [2, 0]": "Expected [#, #], got [#, #]",
    "[Errno 2] No such file or directory: 'a/b.tsv'": "[Errno 2] No such file or directory: '…'",
    "can't find 3 of 'a b' and don't know": "can't find # of '…' and don't know",
    "Object at 0x7f33ab12 is 3.5e-4 bad (12%)": "Object at … is # bad (#)",
    "it said 'the file was not there' at once": "it said 'the file was not there' at once",
    "http://host:80/a/b?x=1 failed": "… failed",
    "id 551ee370-a2d4-43e5-9ace-3efdffeaf626 unknown": "id … unknown",
    "12": "12",
    "": "",
    "/data/run7.h5ad": "/data/run7.h5ad",
}


@pytest.mark.parametrize("message", PATTERNS)
def test_what_varies_in_a_message_is_replaced_and_what_it_says_is_kept(message):
    assert message_pattern(message) == PATTERNS[message]


@given(st.text(alphabet=st.sampled_from("ab1 '\"/.-`x\n")))
def test_a_message_never_vanishes(message):
    assert bool(message_pattern(message).strip()) == bool(message.strip())


@given(st.integers(), st.floats(allow_nan=False, allow_infinity=False))
def test_messages_that_differ_in_numbers_have_one_pattern(count, share):
    assert message_pattern(f"found {count} of {share} cells") == "found # of # cells"
