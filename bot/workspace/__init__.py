"""The working copy: a bare cache for each repository, a git directory and a work tree for each task.

The git directory lies outside the work tree, and git never sees the work tree at all: what the agent writes is read and
written through open folders that follow no link, so nothing of it is ever taken for git's configuration. `git.py` is
the only starter of git. May import `domain` and `errors`.
"""
