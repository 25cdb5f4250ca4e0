"""Small data the notebooks run on by default, and the scripts that made them."""
