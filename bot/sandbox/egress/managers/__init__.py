"""One package manager each: how it is asked for its indexes, and how the one in a sandbox is told them.

Each file has `ask(machine) -> Sources`. No host of a registry is written down here: a default is the manager's own.
"""
