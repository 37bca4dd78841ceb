"""What a person asked for: from Markdown to a command, and who may give it.

Pure. May import `domain`, `errors`, the levels of `github/base.py` and the sentences of `github/comments.py`. A new
command is a variant in `domain/command.py`, an entry in `catalogue.py` and a `case` in `tasks/intake.py`, to which
mypy's `assert_never` points.
"""
