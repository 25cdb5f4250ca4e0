"""Tasks: their definitions, and what a definition or an id says of one."""
