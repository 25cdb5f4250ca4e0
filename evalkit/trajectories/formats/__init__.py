"""One module for each format of trajectories: `recognises` a decoded value, `parse`s it, and lists its `messages`."""
