"""Task definitions, and the facts that a definition or an id holds."""
