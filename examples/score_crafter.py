"""Score Crafter traces: one file, a folder, and with weights of one's own.

    python examples/score_crafter.py [FOLDER]

Without FOLDER the sample episodes are scored.
"""

import sys

from evalkit.crafter import evaluate_all_traces, evaluate_trace, print_evaluation_summary, print_trace_evaluation
from evalkit.io import list_source


def main(folder: str = "samples:crafter") -> None:
    """Score a folder in three ways."""
    # one trace: a dictionary with total_score, counts, trajectory, num_events, trace_file
    first = list_source(folder, "*.json").files[0]
    print_trace_evaluation(evaluate_trace(first))

    # a folder, also those below: a list of these, from high to low; results.ledger names the files that were not used
    results = evaluate_all_traces(folder)
    print_evaluation_summary(results)

    # weights of one's own replace those they name: invalid actions cost nothing, hard achievements count double
    lenient = evaluate_all_traces(folder, weights={"hard_achievement": 10.0, "invalid_action": 0.0})
    scores = {result["source"]: result["total_score"] for result in results}  # trace_file may stand in two folders
    print("\nWith weights of one's own:")
    for result in lenient[:3]:
        print(f"   {result['total_score']:>6.2f}, was {scores[result['source']]:>6.2f}  {result['trace_file']}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
