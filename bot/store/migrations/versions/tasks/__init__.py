"""Revisions of everything but deliveries, oldest first by name."""
