"""Every name of the door is what it says, also after its module was imported."""

from importlib import import_module
from types import ModuleType

import pytest

import evalkit.kinds as door


@pytest.mark.parametrize("name", door.__all__)
def test_a_name_stays_the_same_thing_once_its_module_is_imported(name):
    found = getattr(door, name)
    place = next(place for place, names in door._PLACES.items() if name in names.split())
    module = import_module(f"evalkit.kinds.{place}")
    assert not isinstance(getattr(door, name), ModuleType)
    assert getattr(door, name) is found is getattr(module, name)
