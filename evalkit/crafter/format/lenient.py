"""Decoding what does not quite fit its type: what can't be used is left out."""

from functools import cache
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw

Count = Annotated[int, Meta(ge=-(2**40), le=2**40)]  # what is beyond is no count of anything, and overflows columns
ANYTHING = msgspec.json.Decoder()
_UNFIT = object()  # a value that is not of the declared type


def fit(value: Any, kind: Any) -> Any:
    """Convert plain decoded JSON to a Struct (or a list of it), leaving out what is not of the declared type.

    None for a list that is none. Entries of lists of Structs that are no objects become empty Structs, so that lengths
    stay.
    """
    fitted = _fit(value, _type(kind))
    return None if fitted is _UNFIT else fitted


@cache
def _type(kind: Any) -> Any:
    from msgspec.inspect import type_info

    return type_info(kind)


def _fit(value: Any, kind: Any) -> Any:
    from msgspec import inspect

    if isinstance(kind, inspect.UnionType):
        if value is None:
            return None
        kind = next(k for k in kind.types if not isinstance(k, inspect.NoneType))
    if isinstance(kind, inspect.StructType):
        known = [own for own in kind.fields if isinstance(value, dict) and own.encode_name in value]
        fields = {own.name: _fit(value[own.encode_name], own.type) for own in known}
        # a key whose value does not fit stays known, as None: it tells an event's type
        return kind.cls(**{name: None if own is _UNFIT else own for name, own in fields.items()})
    if isinstance(kind, inspect.ListType) and isinstance(value, list):
        return [own for own in (_fit(item, kind.item_type) for item in value) if own is not _UNFIT]
    if isinstance(kind, inspect.RawType):
        return Raw(msgspec.json.encode(value))
    if isinstance(kind, inspect.AnyType) or (isinstance(kind, inspect.DictType) and isinstance(value, dict)):
        return value
    leaf: Any = {inspect.IntType: Count, inspect.StrType: str, inspect.BoolType: bool}.get(type(kind))  # type: ignore[call-overload]  # other types have no entry
    try:
        return _UNFIT if leaf is None else msgspec.convert(value, leaf, strict=False)
    except msgspec.ValidationError:
        return _UNFIT


def peek(raw: Any, kind: Any) -> Any:
    """Decode a `Raw` field, leaving out what is not of the declared type; None where nothing is left."""
    if not isinstance(raw, Raw):
        return None
    try:
        return _decoder(kind).decode(raw)
    except msgspec.ValidationError:
        return fit(ANYTHING.decode(raw), kind)


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder:
    return msgspec.json.Decoder(kind | None)
