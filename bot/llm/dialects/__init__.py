"""How a tool call is spelled in plain text, for models that have no tool calls of their own; pure and streaming.

Owns the grammars `xml`, `json` and `prose`; `native` needs none. May import `domain` and `errors`, does no I/O. A new
one is a file with a `Dialect`, a row in `bot.llm.spoken.DIALECTS` and a folder of cases in `tests/cases/dialects/`.

All grammars keep three promises. Text that a call carries is copied exactly: no entity is decoded, nothing is trimmed
but one line break behind an opening tag. What cannot be read is a `Fault` that tells the model what to write instead.
And where it is not certain where a call ends, nothing of the reply runs, since the text behind it may be somebody
else's file and not the model's will.
"""
