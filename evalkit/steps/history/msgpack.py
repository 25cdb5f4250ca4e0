"""Check msgpack data before decoding: declared sizes must match the data and stay within limits."""

import errno

from evalkit.io.limits import LimitError, limits

_FIXED = {0xC0: 0, 0xC2: 0, 0xC3: 0, 0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}
_FIXED |= {0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8}
_FIXED |= {0xD4 + i: 1 + 2**i for i in range(5)}  # extensions of 1, 2, 4, 8 and 16 bytes, after their code
_SIZED = {0xC4: (1, 0), 0xC5: (2, 0), 0xC6: (4, 0), 0xD9: (1, 0), 0xDA: (2, 0), 0xDB: (4, 0)}  # bytes and texts
_SIZED |= {0xC7: (1, 1), 0xC8: (2, 1), 0xC9: (4, 1)}  # extensions, with their code
_COUNTED = {0xDC: (2, 1), 0xDD: (4, 1), 0xDE: (2, 2), 0xDF: (4, 2)}  # lists and maps


def check_msgpack(data: bytes | memoryview) -> None:
    """Validate a msgpack value without building it.

    A decoder allocates as many entries as a list declares: twelve bytes may ask for gigabytes. Here every list and map
    must have at least one byte for each of its entries, and all of them together must stay within `Limits.values`. The
    contents of extensions are not checked.

    Raises
    ------
    ValueError
        If it declares more than there is.
    LimitError
        If it holds more values, or deeper ones, than the limits allow.
    """
    data, most = bytes(data), limits()
    at, end, values, left, open_ = 0, len(data), 0, 1, list[int]()  # `left`: values to come in the innermost list
    while True:
        while not left:
            if not open_:
                return
            left = open_.pop()
        left, values = left - 1, values + 1
        if at >= end:
            raise ValueError("it ends within a value")
        at, entries = _step(data, at)
        if entries > end - at:
            raise ValueError(f"a list announces {entries} entries, and {max(end - at, 0)} bytes are left")
        if entries:
            open_.append(left)
            left = entries
            if len(open_) > 10 * most.depth:
                raise LimitError(errno.EOVERFLOW, f"nested deeper than {10 * most.depth} levels (10 × depth)")
        if values > most.values:
            raise LimitError(errno.EFBIG, f"more values than the limit of {most.values} (values)")


def _step(data: bytes, at: int) -> tuple[int, int]:
    """Skip one value; of a list or map only its header, with the number of values that follow."""
    code = data[at]
    at += 1
    if code <= 0x7F or code >= 0xE0:
        return at, 0
    if code <= 0x8F:
        return at, 2 * (code & 0x0F)
    if code <= 0x9F:
        return at, code & 0x0F
    if code <= 0xBF:
        return at + (code & 0x1F), 0
    if code in _FIXED:
        return at + _FIXED[code], 0
    if code in _SIZED:
        width, more = _SIZED[code]
        return at + width + more + int.from_bytes(data[at : at + width]), 0
    if code in _COUNTED:
        width, times = _COUNTED[code]
        return at + width, times * int.from_bytes(data[at : at + width])
    raise ValueError(f"no value begins with {code:#x}")
