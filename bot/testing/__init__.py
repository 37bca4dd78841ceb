"""Doubles that are real implementations: a local GitHub and a scripted model, shipped with the product."""
