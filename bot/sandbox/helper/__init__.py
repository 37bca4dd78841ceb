"""The process that acts with the workspace's uid: it runs commands and touches files, and holds nothing secret.

Its sources are sent to a bare interpreter of the machine, since that uid may not be able to read our own folders.
Hence: the standard library only, `from` imports of siblings only, Python 3.9 onwards, one thread.
A new operation is one function and one line in `main`.
"""
