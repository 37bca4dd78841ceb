"""What a project is made of, told from its files: which ecosystems it belongs to and how each is set up.

Owns the recipes of a prepared environment. Pure: it is given the contents of files and returns values; it imports
nothing of ours. A further ecosystem is one file with `WANTED` and `recipe`, and one line in `detect.py`.
"""
