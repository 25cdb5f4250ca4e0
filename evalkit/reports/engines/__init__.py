"""Execute notebooks, in a Jupyter kernel or a forked process, and collect their outputs."""
