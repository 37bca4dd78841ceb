"""The state of the hub by noun: each module adds one noun's changes and look-ups to the next; `hub.Hub` is the sum."""
