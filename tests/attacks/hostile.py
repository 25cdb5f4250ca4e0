"""Hostile names, and logs of all kinds in which every name is one."""

import json
import unicodedata

from tests.crafter.traces import config, environment, hook, trace

EVIL = "\x1b]0;t\x07\x1b[31mx\x9b2J\u202egnp\u2066\r\nINJECTED\x00\x7f\u200b\u2028INJECTED"
NAME = EVIL.replace("\x00", "")  # what a file can be called


def assert_plain(text, *, lines=True):
    """Assert that a text holds nothing but lines of plain text."""
    steering = [c for c in text if c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
    assert steering == []
    assert not (lines and [line for line in text.splitlines() if line.startswith("INJECTED")])


def write_hostile(folder):
    """Write logs of all kinds in which every name is hostile, and a model `good` beside."""
    turns = [{"role": role, "content": f"{EVIL} !{NAME}({EVIL})"} for role in ("user", "assistant", "system")]
    for model in (NAME, "good"):
        for task in (NAME, "bread"):
            for score in (0, 1):
                log = [*turns, {"role": "system", "content": f"Task ended with score : {score}"}]
                path = folder / "logs" / "mindcraft" / model / f"{task}{score}" / f"{NAME}_0_0.json"
                path.parent.mkdir(parents=True)
                path.write_text(json.dumps({"memory": EVIL, "turns": log}))
                (path.parent / f"broken{NAME}_1.json").write_text("{" + EVIL)
    definition = {"goal": EVIL, "type": "cooking", "agent_count": 1, "blocked_actions": {EVIL: [EVIL]}, EVIL: EVIL}
    (folder / "tasks.json").write_text(json.dumps({f"{NAME}0": definition, "bread0": definition, "bread1": {EVIL: 1}}))

    traces = folder / "logs" / "crafter"
    traces.mkdir()
    data = {"hook_name": EVIL, "data": {"achievements": [EVIL], EVIL: EVIL, "reason": EVIL}}
    for number, model in enumerate((EVIL, "good")):
        event = environment(0, [hook("easy_achievement", ["collect_wood"]), data])
        event["metadata"] = {"turn": 1, "observation_text": EVIL, EVIL: EVIL}
        about = [config(model_name=model, difficulty="easy")]
        about.append({"metadata_type": "error", "data": {"message": EVIL, "error": EVIL}})
        session = trace(event, metadata=about, session_id=f"crafter_episode_{number}_{model}")
        (traces / f"session_{number}{NAME}.json").write_text(json.dumps(session))
    (traces / f"broken{NAME}.json").write_text("{" + EVIL)

    records = [
        {"step": {"function_name": name, "parameters": {EVIL: EVIL}}, "success": success, "result": EVIL, "error": EVIL}
        for name in (EVIL, "perform_enrichment_analyses")
        for success in (True, False)
    ]
    (folder / "logs" / "steps").mkdir()
    for name in (f"{NAME}.json", "good.json"):
        (folder / "logs" / "steps" / name).write_text(json.dumps({"execution_history": records, "plan": [EVIL]}))
    (folder / "logs" / "steps" / f"broken{NAME}.json").write_text('{"execution_history": [' + EVIL)
