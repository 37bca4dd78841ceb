"""Revisions of the deliveries, oldest first by name."""
