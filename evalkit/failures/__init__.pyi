from .events import detector as detector
from .events import detectors as detectors
from .events import events as events
