"""The face in the terminal and in GitHub Actions: one file for each command.

Commands import what they need when they run, so that `--help` costs nothing. May import everything below.
"""
