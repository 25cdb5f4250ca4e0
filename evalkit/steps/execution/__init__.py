"""What the agent uses while it runs: storing results, key findings, and the workflow."""
