"""Logs of every kind, with hostile texts in each of their fields."""

import base64
import json

from tests.crafter.traces import config, environment, hook, language_model, runtime, trace
from tests.crafter.traces import write as write_trace
from tests.mindcraft.builders import SCORE, turn, write_all

HOSTILE = [
    "<script>window.ran = 1</script>",
    "<img src=x onerror='window.ran = 1'>",
    '"><svg onload=window.ran=1>',
    "</pre></details></li></style></title></script><script>window.ran = 1</script>",
    "javascript:window.ran=1",
    "{{ 7 * 7 }}{% raw %}",
    "<iframe srcdoc='<script>parent.ran = 1</script>'></iframe>",
    "<meta http-equiv=refresh content='0;url=https://example.org'>",
    "\x1b[31m<b>red</b>\x1b]8;;https://example.org\x07",
    "\u202egnp.exe\u2066",
]
BAD = "".join(HOSTILE)
_NAME = "<img src=x onerror=window.ran=1>"  # as a file's name may be


def mindcraft(folder):
    turns = [turn("system", text) for text in HOSTILE] + [
        turn(BAD, BAD),
        turn("user", f"{_NAME}: (FROM OTHER BOT){BAD}"),
    ]
    turns += [turn("assistant", f"{BAD} !run({BAD})"), turn("assistant", 7), turn("system", f"{SCORE}0")]
    logs = {f"{_NAME}/{_NAME}/{agent}_0.json": {"turns": turns} for agent in (_NAME, "Andy_1")}
    return write_all(folder, {**logs, f"{_NAME}/results.txt": repr({"model": BAD, "total": 1}), "x/t/Andy_0_0.json": 1})


def crafter(folder):
    pixels = base64.b64encode(bytes(range(256)) * 48).decode()
    images = [(pixels, [64, 64, 3]), (BAD, [64, 64, 3]), (pixels, BAD), (pixels, [9, 9, 9])]
    events = []
    for number, (text, shape) in enumerate(images):
        seen = {"observation_image_base64": text, "observation_image_shape": shape, "inventory": {BAD: 1, "health": 3}}
        hooks = [hook("invalid_action", action=BAD, reason=BAD)]
        played = runtime(number, hooks, [BAD], time_record={"event_time": BAD})
        played["metadata"]["action_reasoning"] = BAD
        unlocked = environment(number, [hook("easy_achievement", [BAD])], system_state_after={"public_state": seen})
        events += [language_model(number, model_name=BAD), played, unlocked]
    error = {"metadata_type": "error", "data": {"error_message": BAD}, "timestamp": BAD}
    metadata = [config(model_name=BAD, difficulty=BAD, task_instance_id=BAD, agent_type=BAD, seed=BAD), error]
    write_trace(folder, trace(*events, metadata=metadata, session_id=BAD), f"{_NAME}.json")
    return folder


def steps(folder):
    step = {"step_type": BAD, "function_name": BAD, "parameters": {BAD: BAD}, "description": BAD, "skip_reason": None}
    record = {"step_index": 0, "step": step, "success": True, "result": BAD, "result_type": "text", "timestamp": BAD}
    records = [
        record,
        {**record, "result": {BAD: [BAD]}, "result_type": "structured"},
        {**record, "result": BAD, "result_type": "visualization"},
        {**record, "success": False, "error": BAD, "error_type": BAD},
        {**record, "step": {**step, "skip_reason": BAD}},
    ]
    (folder / f"{_NAME}.json").write_text(json.dumps(records), encoding="utf-8")
    return folder


MAKE = {"mindcraft": mindcraft, "crafter": crafter, "steps": steps}
