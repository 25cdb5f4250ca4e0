"""Read what the player saw: the raw images that some traces hold, which only a viewer needs."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from evalkit.crafter.format import ANYTHING, IMAGE
from evalkit.io import decode_json
from evalkit.kinds import Image

_KEY = "observation_image_base64"
_SHAPE = "observation_image_shape"
_LARGEST = 1024  # pixels per side


def images_of(data: bytes) -> dict[int, Image]:
    """Read the image that the game showed after each event.

    Parameters
    ----------
    data : bytes
        A readable session trace.

    Returns
    -------
    dict of int to Image
        By position in ``event_history``; events without an image, or with a broken one, are left out.
    """
    if IMAGE not in data:
        return {}
    trace, _ = decode_json(data, ANYTHING)
    events = trace.get("event_history") if isinstance(trace, dict) else None
    images = {}
    for place, event in enumerate(events if isinstance(events, list) else ()):
        state = event.get("system_state_after") if isinstance(event, Mapping) else None
        for name in ("public_state", "observation") if isinstance(state, Mapping) else ():
            if image := _read((state or {}).get(name)):
                images[place] = image
                break
    return images


def _read(observation: Any) -> Image | None:
    """Decode the image of an observation; None if it is missing or its size does not match its shape."""
    if not isinstance(observation, Mapping):
        return None
    text, shape = observation.get(_KEY), observation.get(_SHAPE)
    if not isinstance(text, str) or not isinstance(shape, list) or len(shape) != 3:
        return None
    if any(type(side) is not int or not 0 < side <= _LARGEST for side in shape) or shape[2] != 3:
        return None
    try:
        pixels = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    height, width, _ = shape
    return Image(width, height, pixels) if len(pixels) == 3 * width * height else None
