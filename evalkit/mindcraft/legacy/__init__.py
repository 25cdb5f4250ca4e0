"""Compare what the original MineCollab scripts report for the same logs with our figures."""
