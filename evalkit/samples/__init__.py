"""Sample logs, the default input of the notebooks, and the scripts that generate them."""
