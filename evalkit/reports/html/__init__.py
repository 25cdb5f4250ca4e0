"""Pages: executed notebooks as HTML, and the index of them."""
