"""Decode values that do not quite fit their types; unusable values are left out."""

from functools import cache
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw

Count = Annotated[int, Meta(ge=-(2**40), le=2**40)]  # larger values are no counts, and overflow columns
ANYTHING = msgspec.json.Decoder()
_UNFIT = object()  # a value that is not of the declared type


def fit(value: Any, kind: Any) -> Any:
    """Convert decoded JSON to a Struct (or a list of it), leaving out values that are not of the declared type.

    None if a list is expected and the value is not one. Entries of lists of Structs that are not objects become empty
    Structs, so that lengths stay the same.
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
        known = [field for field in kind.fields if isinstance(value, dict) and field.encode_name in value]
        fields = {field.name: _fit(value[field.encode_name], field.type) for field in known}
        # a key whose value does not fit is kept as None: it shows an event's type
        return kind.cls(**{name: None if item is _UNFIT else item for name, item in fields.items()})
    if isinstance(kind, inspect.ListType) and isinstance(value, list):
        return [fitted for fitted in (_fit(item, kind.item_type) for item in value) if fitted is not _UNFIT]
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
    """Decode a `Raw` field, leaving out values that are not of the declared type; None if nothing is left."""
    if not isinstance(raw, Raw):
        return None
    try:
        return _decoder(kind).decode(raw)
    except msgspec.ValidationError:
        return fit(ANYTHING.decode(raw), kind)


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder:
    return msgspec.json.Decoder(kind | None)
