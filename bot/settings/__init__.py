"""What an operator, a repository and a command may say, and the one frozen object that comes of it.

`load` alone reads YAML and the environment; `server` and `repository` say which keys there are; `resolve` puts them
together, and a lower level can only tighten. May import only `bot.domain` and `bot.errors`. A new key is a field with a
description in `server` or `repository`; the files in `config/` and the page in `docs/` are written by `document`.
"""
