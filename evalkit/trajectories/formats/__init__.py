"""A module for each trajectory format, with functions `recognises`, `parse` and `messages`."""
