"""Attacks a level of confinement on this machine before it is trusted: what counts is what it does, not what it has.

`attack.py` runs inside, as a command; `run.py` prepares the outside and looks at what has really happened there.
"""
