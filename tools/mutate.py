"""Mutate inputs with knowledge of their structure: JSON values, encoded bytes, archives, databases."""

import copy
import io
import json
import math
import random
import sqlite3
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

_TEXTS = (
    *("", " ", "\n", "\x00", "\x1b[31m", "\u202e", "\ud800", "é" * 50, "x" * 5000, "=1+1", "a/../b", "nan", "1e999"),
    *("true", "None", "[1, 2", "{'a': ", "np.float64(1)", "2025-01-01T00:00:00", "9999-12-31T23:59:59Z", "!a(", "-0"),
    *("Task ended with score : 0.5", "Task ended with score : x", "Task successful", "Agent process restarted."),
    *("group_to_cell_type = {'a': 'b'", "episode_1_m_20250101_000000", "<html>", "![x](http://x)", "null", "#2"),
)
_VALUES = (
    *(None, True, False, 0, -1, 1, 0.5, -0.0, 1e308, math.nan, math.inf, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64),
    *(-(2**63), 10**30, 9_000_000_000, [], {}, [[]], [None], {"": None}, {"a": {}}, [1, "a", None, {}], [0] * 300),
)


def mutated_value(value: Any, others: Sequence[Any], rng: random.Random) -> Any:
    """Change a JSON value in one to four places, possibly inserting parts of other values."""
    value = copy.deepcopy(value)
    for _ in range(rng.choice((1, 1, 2, 4))):
        holder = {"": value}
        places = list(_places(holder))
        parent, key = rng.choice(places)
        _mutate(parent, key, others, rng)
        value = holder.get("")
    return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    waiting = [value]
    while waiting:
        container = waiting.pop()
        for key in container if isinstance(container, dict) else range(len(container)):
            yield container, key
            if isinstance(container[key], (dict, list)):
                waiting.append(container[key])


def _mutate(parent: Any, key: Any, others: Sequence[Any], rng: random.Random) -> None:
    old = parent[key]
    way = rng.randrange(9)
    if way == 0:
        parent[key] = copy.deepcopy(rng.choice(_VALUES))
    elif way == 1:
        parent[key] = rng.choice(_TEXTS)
    elif way == 2:
        del parent[key]
    elif way == 3:
        other = {"": rng.choice(others)}
        holder, place = rng.choice(list(_places(other)))
        parent[key] = copy.deepcopy(holder[place])
    elif way == 4 and isinstance(parent, dict):
        names = [name for holder, name in _places({"": rng.choice(others)}) if isinstance(name, str)]
        parent[rng.choice([*names, *_TEXTS])] = copy.deepcopy(old)
    elif way == 5 and isinstance(old, list):
        parent[key] = (old * rng.choice((2, 3, 50)))[:2000]
    elif way == 6 and isinstance(old, str):
        at = rng.randrange(len(old) + 1)
        parent[key] = old[:at] + rng.choice(_TEXTS) + old[at + rng.randrange(4) :]
    elif way == 7:
        for _ in range(rng.choice((1, 3, 120, 400))):
            old = [old] if rng.random() < 0.5 else {"a": old}
        parent[key] = old
    elif isinstance(old, (int, float)) and not isinstance(old, bool):
        parent[key] = rng.choice((-old, old + 1, str(old), old * 10**6, float(old) if abs(old) < 1e300 else 0))
    else:
        parent[key] = [old]


def written(value: Any, rng: random.Random) -> bytes:
    """Encode a JSON value as a correct or faulty writer might."""
    separators = rng.choice((None, None, (" ,\n", ":\n ")))  # instead of an indent, which is 20 times slower
    text = json.dumps(value, ensure_ascii=rng.random() < 0.5, separators=separators)
    data = text.encode("utf-8", "surrogatepass")
    return mutated_bytes(data, rng) if rng.random() < 0.25 else data


def mutated_bytes(data: bytes, rng: random.Random) -> bytes:
    """Change bytes: cut, flip, insert or repeat them, or use another encoding."""
    way, at = rng.randrange(7), rng.randrange(len(data) + 1)
    if way == 0:
        return data[:at]
    if way == 1:
        return b"\xef\xbb\xbf" + data
    if way == 2:
        return data.decode("utf-8", "replace").encode("utf-16")
    if way == 3:
        return data[:at] + bytes(rng.choices(range(256), k=rng.choice((1, 1, 4)))) + data[at + 1 :]
    if way == 4:
        return data[:at] + data[at : at + 200] * rng.choice((2, 20)) + data[at:]
    if way == 5:
        return data + data[:at]
    changed = bytearray(data)
    for _ in range(rng.choice((1, 2, 8))):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def archive(files: Sequence[bytes], rng: random.Random) -> bytes:
    """Return a zip archive, in which some bytes and names are wrong."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as zipped:
        for i, data in enumerate(files):
            odd = rng.choice(("/../../x.json", "/etc/x", "a//b", "a\\b.json", "é" * 9, "a.json", "b/", " ", "!/x"))
            zipped.writestr(zipfile.ZipInfo(f"{i}{odd}" if rng.random() < 0.3 else f"{i}.json"), data)
    return mutated_bytes(made.getvalue(), rng) if rng.random() < 0.8 else made.getvalue()


def database(states: Sequence[Any], rng: random.Random) -> bytes:
    """Return a database of checkpoints, some of which are invalid."""
    connection = sqlite3.connect(":memory:")
    connection.execute(f"PRAGMA page_size = {rng.choice((512, 1024, 4096))}")
    connection.execute("CREATE TABLE checkpoints (thread_id, checkpoint_ns, checkpoint_id, type, checkpoint)")
    for i, state in enumerate(states):
        kind = rng.choice(("json", "msgpack", "msgpack"))
        try:
            blob = json.dumps(state).encode() if kind == "json" else msgspec.msgpack.encode(_packable(state))
        except (ValueError, OverflowError, RecursionError, TypeError):
            blob = b"\xc1"
        blob = mutated_bytes(blob, rng) if rng.random() < 0.4 else blob
        row = [f"t{i}", "", str(i), kind, blob]
        if rng.random() < 0.1:
            row[rng.randrange(5)] = rng.choice((None, 1, 0.5, "x", b"\xff"))
        connection.execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?)", row)
    connection.commit()
    data = connection.serialize()
    connection.close()
    return mutated_bytes(data, rng) if rng.random() < 0.5 else data


def _packable(value: Any) -> Any:
    """Insert msgpack extensions in the form that LangGraph writes in some places of a value."""
    if isinstance(value, dict) and len(value) == 1:
        return msgspec.msgpack.Ext(5, msgspec.msgpack.encode(["module", "Name", next(iter(value.values())), ""]))
    if isinstance(value, dict):
        return {key: _packable(item) for key, item in value.items()}
    return [_packable(item) for item in value] if isinstance(value, list) else value
