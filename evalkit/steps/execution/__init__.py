"""Parts the agent uses at run time: storage of results, key findings, and the workflow."""
