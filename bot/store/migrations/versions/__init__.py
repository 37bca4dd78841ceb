"""Revisions, a folder for each branch."""
