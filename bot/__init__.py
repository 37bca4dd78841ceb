"""Issuewright: a labelled issue becomes a reviewed pull request."""

__version__ = "0.1.0"
