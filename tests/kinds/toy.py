"""A kind of log made for tests: one JSON object per game, a row for the game and one for each of its moves."""

import json
import os
from pathlib import Path

import pandas as pd

from evalkit.io import Column
from evalkit.kinds import FileRules, LogKind, Parsed

GAMES = (
    Column("model_name", "str", "who played"),
    Column("task_id", "str", "the game"),
    Column("score", "float", "points"),
    Column("is_successful", "bool?", "won"),
    Column("tags", "list", "labels"),
    Column("pieces", "counts", "pieces taken, by kind"),
)
MOVES = (Column("move", "int", "number"), Column("text", "str", "what was done"))


def parse(path: str, data: bytes) -> Parsed:
    """Read a game."""
    try:
        game = json.loads(data)
    except ValueError as error:
        return Parsed("failed", f"{type(error).__name__}: {error}")
    if "moves" not in game:
        return Parsed("skipped", "not a game")
    row = (game.get("model"), game.get("task"), game.get("score"), game.get("won"), game.get("tags", []), {"pawn": 1})
    return Parsed("used", "", {"games": [row], "moves": list(enumerate(game["moves"]))})


TOY = LogKind(
    name="toy",
    title="toy game",
    records={"games": GAMES, "moves": MOVES},
    parse=parse,
    recognises=lambda head: "toy game" if b'"moves"' in head else "",
    files=FileRules(accepts=lambda path: "" if path.endswith(".json") else "not named like a JSON file"),
)
OLD = 1_600_000_000


def write(path: Path, moves=("e4",), *, age: float = 0, **game) -> Path:
    """Write a game that looks as if it had been left alone for a while."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"moves": list(moves), **game}))
    os.utime(path, (OLD + age, OLD + age))
    return path


def assert_same_frames(some, others) -> None:
    """Compare the frames and ledgers of logs."""
    for one, other in zip(some, others, strict=True):
        pd.testing.assert_frame_equal(one, other)
