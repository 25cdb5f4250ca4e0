"""Play the real game and write session traces of it (extra ``crafter``)."""

from evalkit.crafter.recorder.game import make_env
from evalkit.crafter.recorder.session import Observations, Recorder

__all__ = ["Observations", "Recorder", "make_env"]
