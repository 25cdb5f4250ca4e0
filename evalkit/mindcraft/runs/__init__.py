"""The life of a run: its folder, its model, its logs combined, its row in the frames."""
