"""The made samples come out the same every time; golden texts hold what is in them."""

import filecmp
import os

from evalkit.io import list_source, resolve
from tools.samples import mindcraft as samples


def test_the_script_makes_the_same_files_again(tmp_path, monkeypatch):
    monkeypatch.setattr(samples, "ROOT", tmp_path)
    samples.main()
    root = resolve("samples:mindcraft")
    names = [os.path.relpath(path, root) for path in list_source(root).files]
    assert names == [os.path.relpath(path, tmp_path) for path in list_source(tmp_path).files]
    _, differ, missing = filecmp.cmpfiles(root, tmp_path, names, shallow=False)
    assert (differ, missing) == ([], [])
