"""Write the samples of mini-swe-agent: trajectories of its agent, with its deterministic model and a shell in a folder.

    PYTHON tools/samples/made_by_mini_swe_agent.py FOLDER    # a Python in which mini-swe-agent is installed

The script replaces everything that depends on the machine: times, and the folders in which it ran and wrote.
"""

import itertools
import json
import os
import re
import sys
import tempfile
from pathlib import Path

from minisweagent.agents.default import DefaultAgent
from minisweagent.environments.local import LocalEnvironment
from minisweagent.models.test_models import DeterministicToolcallModel, make_toolcall_output

START = 1_789_376_400  # time of the first call, in seconds since 1970
STEPS = 6  # maximum number of steps of an agent
PRICES = {"alder/alder-large": 0.004, "birch/birch-70b": 0.001}  # US dollars per call
FILES = {
    "main.py": """import sys

for line in sys.stdin:
    print(line.rstrip().split(",")[:-1])
""",
    "tests.py": """import subprocess

told = subprocess.run("echo a,b | python main.py", shell=True, capture_output=True, text=True).stdout.strip()
print("ok" if told == "['a', 'b']" else f"wrong: {told}")
raise SystemExit(told != "['a', 'b']")
""",
}
LOOK, READ = "ls", "cat main.py"
TEST = "python tests.py"
MEND, SPOIL = "sed -i 's/\\[:-1\\]//' main.py", "sed -i 's/-1/-2/' main.py"
SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat main.py"
GIVE_UP = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
RUNS = {
    "alder/alder-large": {
        "made__up-101": [LOOK, READ, TEST, MEND, TEST, SUBMIT],
        "made__up-102": [READ, MEND, TEST, SUBMIT],
        "made__up-103": [LOOK, READ, TEST, SPOIL, SUBMIT],
        "made__up-104": [LOOK, READ, TEST, LOOK, READ, TEST, SUBMIT],  # one step too many
    },
    "birch/birch-70b": {
        "made__up-101": [READ, MEND, SUBMIT],
        "made__up-102": [LOOK, SPOIL, TEST, SUBMIT],
        "made__up-103": [LOOK, GIVE_UP],  # an empty patch
        "made__up-104": [LOOK, READ, SPOIL, READ, SPOIL, TEST, SUBMIT],
    },
}


def main() -> None:
    """Run each model on each task."""
    target = Path(sys.argv[1])
    for model, tasks in RUNS.items():
        for task, commands in tasks.items():
            with tempfile.TemporaryDirectory() as folder:
                for name, text in FILES.items():
                    Path(folder, name).write_text(text)
                outputs = []
                for number, command in enumerate(commands):
                    call_id = f"call-{number}"
                    call = {"id": call_id, "function": {"name": "bash", "arguments": json.dumps({"command": command})}}
                    output = make_toolcall_output(None, [call], [{"command": command, "tool_call_id": call_id}])
                    output["extra"]["cost"] = PRICES[model]
                    outputs.append(output)
                path = target / model.partition("/")[2] / task / f"{task}.traj.json"
                path.parent.mkdir(parents=True, exist_ok=True)
                agent = DefaultAgent(
                    DeterministicToolcallModel(outputs=outputs, model_name=model, cost_per_call=PRICES[model]),
                    LocalEnvironment(cwd=folder),
                    system_template="You can use a shell.",
                    instance_template="{{task}}",
                    step_limit=STEPS,
                    output_path=path,
                )
                agent.run(f"Please solve issue {task[-1]}: the parser drops the last column of every row.")
                log = json.loads(
                    path.read_text().replace(os.path.realpath(folder), "/testbed").replace(folder, "/testbed")
                )
            del log["info"]["config"]["model"]["outputs"]  # the scripted outputs, which the messages repeat
            text = json.dumps({"instance_id": task, **log}, indent=1)
            times = itertools.count(START, 9)
            text = re.sub(r'"timestamp": [0-9.]+', lambda _: f'"timestamp": {next(times)}', text)  # noqa: B023
            path.write_text(text.replace(str(target), "/runs") + "\n")


if __name__ == "__main__":
    main()
