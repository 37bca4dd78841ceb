"""The loop: ask the model, run what it calls, until it is done or a limit is reached.

Knows no GitHub, no database and no web. May import `domain`, `settings`, `errors` and the seams of `llm` and `tools`.
Prompts are files in `prompts/`.
"""
