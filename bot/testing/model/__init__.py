"""A scripted model behind a real HTTP server: it plays a script and is never an AI.

Owns the script (`script`, `load`), the play (`scene`, `play`), the prompt cache it pretends to have (`cache`) and one
module family per vendor's wire (`anthropic_read`, `anthropic_check`, `anthropic_wire`). Only `server` does I/O.

Every reply says what it is: the model id is `scripted:<script name>` and the header `x-scripted-model: true`.

May import starlette, uvicorn and yaml; no other room of `bot`. A further wire is a sibling: a reader that makes a
`request.Request`, a writer that spells a `reply.Reply`, one route in `server`.
"""
