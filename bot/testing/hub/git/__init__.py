"""Bare repositories on disk, the hub's only truth for refs and commits: `history.Git` is the whole."""
