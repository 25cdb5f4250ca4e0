"""What tells one state of code from another."""

import sys
import types

from evalkit.io.versions import code_version


def test_code_of_files_has_one_version_and_typed_in_code_another_at_each_call(monkeypatch):
    assert code_version("evalkit.mindcraft.parse") == code_version("evalkit.mindcraft.parse") != code_version()
    for name in (None, "<stdin>"):
        typed = types.ModuleType("typed_in")
        if name:
            typed.__file__ = name
        monkeypatch.setitem(sys.modules, "typed_in", typed)
        assert code_version("typed_in") != code_version("typed_in")
