"""Hostile names, and logs of all kinds in which every name is one."""

import unicodedata
from itertools import product

from tests.crafter.traces import config, environment, hook, trace
from tests.mindcraft.builders import SCORE, turn, write_all

EVIL = "\x1b]0;t\x07\x1b[31mx\x9b2J\u202egnp\u2066\r\nINJECTED\x00\x7f\u200b\u2028INJECTED"
NAME = EVIL.replace("\x00", "")  # what a file can be called


def assert_plain(text, *, lines=True):
    """Assert that a text holds nothing but lines of plain text."""
    steering = [c for c in text if c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
    assert steering == []
    assert not (lines and [line for line in text.splitlines() if line.startswith("INJECTED")])


def write_hostile(folder, evil=EVIL, name=NAME):
    """Write logs of all kinds in which every text is hostile, the names of files too, and a model `good` beside."""
    turns = [turn(role, f"{evil} !{name}({evil})") for role in ("user", "assistant", "system")]
    definition = {"goal": evil, "type": "cooking", "agent_count": 1, "blocked_actions": {evil: [evil]}, evil: evil}
    files = {"tasks.json": {f"{name}0": definition, "bread0": definition, "bread1": {evil: 1}}}
    for model, task, score in product((name, "good"), (name, "bread"), (0, 1)):
        run = f"logs/mindcraft/{model}/{task}{score}"
        files[f"{run}/{name}_0_0.json"] = {"memory": evil, "turns": [*turns, turn("system", f"{SCORE}{score}")]}
        files[f"{run}/broken{name}_1.json"] = "{" + evil

    data = {"hook_name": evil, "data": {"achievements": [evil], evil: evil, "reason": evil}}
    event = environment(0, [hook("easy_achievement", ["collect_wood"]), data])
    event["metadata"] = {"turn": 1, "observation_text": evil, evil: evil}
    error = {"metadata_type": "error", "data": {"message": evil, "error": evil}}
    for number, model in enumerate((evil, "good")):
        about = [config(model_name=model, difficulty="easy"), error]
        session = trace(event, metadata=about, session_id=f"crafter_episode_{number}_{model}")
        files[f"logs/crafter/session_{number}{name}.json"] = session
    files[f"logs/crafter/broken{name}.json"] = "{" + evil

    records = [
        {"step": {"function_name": tool, "parameters": {evil: evil}}, "success": success, "result": evil, "error": evil}
        for tool, success in product((evil, "perform_enrichment_analyses"), (True, False))
    ]
    for file in (f"{name}.json", "good.json"):
        files[f"logs/steps/{file}"] = {"execution_history": records, "plan": [evil]}
    files[f"logs/steps/broken{name}.json"] = '{"execution_history": [' + evil
    write_all(folder, files)
