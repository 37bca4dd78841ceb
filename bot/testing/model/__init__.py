"""A scripted model behind a real HTTP server: it plays a script and is never an AI.

Owns the script (`script`, `load`), the play (`scene`, `play`), the prompt cache it pretends to have (`cache`), one
family of modules for each vendor's wire (`<vendor>_check`, `_read`, `_wire`, `_errors`), and the list of wires
(`wires`). `spoken` and its family play to clients whose calls are plain text. Only `server` and `sending` do I/O.

Every reply says what it is: the model id is `scripted:<script name>` and the header `x-scripted-model: true`.

May import starlette, uvicorn and yaml; no other room of `bot`. A further wire is a family of its own, with a reader
that makes a `request.Request` and a writer that spells a `reply.Reply`, and one value in `wires`.
"""
