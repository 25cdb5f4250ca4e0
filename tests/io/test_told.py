"""Warnings as commands tell them."""

import warnings

from evalkit.io.told import told_warnings


def test_each_text_is_told_once_as_plain_text_of_one_line(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        before = warnings.showwarning
        with told_warnings():
            for text in ("a\n\x1b[31mb", "a\n\x1b[31mb", "c"):
                warnings.warn(text, stacklevel=1)
        assert warnings.showwarning is before
    assert capsys.readouterr().err.splitlines() == ["evalkit: warning: a \ufffd[31mb", "evalkit: warning: c"]
