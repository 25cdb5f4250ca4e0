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


def write_hostile(folder, evil=EVIL, name=NAME):
    """Write logs of all kinds in which every text is hostile, the names of files too, and a model `good` beside."""
    turns = [{"role": role, "content": f"{evil} !{name}({evil})"} for role in ("user", "assistant", "system")]
    for model in (name, "good"):
        for task in (name, "bread"):
            for score in (0, 1):
                log = [*turns, {"role": "system", "content": f"Task ended with score : {score}"}]
                path = folder / "logs" / "mindcraft" / model / f"{task}{score}" / f"{name}_0_0.json"
                path.parent.mkdir(parents=True)
                path.write_text(json.dumps({"memory": evil, "turns": log}))
                (path.parent / f"broken{name}_1.json").write_text("{" + evil)
    definition = {"goal": evil, "type": "cooking", "agent_count": 1, "blocked_actions": {evil: [evil]}, evil: evil}
    (folder / "tasks.json").write_text(json.dumps({f"{name}0": definition, "bread0": definition, "bread1": {evil: 1}}))

    traces = folder / "logs" / "crafter"
    traces.mkdir()
    data = {"hook_name": evil, "data": {"achievements": [evil], evil: evil, "reason": evil}}
    for number, model in enumerate((evil, "good")):
        event = environment(0, [hook("easy_achievement", ["collect_wood"]), data])
        event["metadata"] = {"turn": 1, "observation_text": evil, evil: evil}
        about = [config(model_name=model, difficulty="easy")]
        about.append({"metadata_type": "error", "data": {"message": evil, "error": evil}})
        session = trace(event, metadata=about, session_id=f"crafter_episode_{number}_{model}")
        (traces / f"session_{number}{name}.json").write_text(json.dumps(session))
    (traces / f"broken{name}.json").write_text("{" + evil)

    records = [
        {
            "step": {"function_name": tool, "parameters": {evil: evil}},
            "success": success,
            "result": evil,
            "error": evil,
        }
        for tool in (evil, "perform_enrichment_analyses")
        for success in (True, False)
    ]
    (folder / "logs" / "steps").mkdir()
    for file in (f"{name}.json", "good.json"):
        (folder / "logs" / "steps" / file).write_text(json.dumps({"execution_history": records, "plan": [evil]}))
    (folder / "logs" / "steps" / f"broken{name}.json").write_text('{"execution_history": [' + evil)
