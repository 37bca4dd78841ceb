"""The only room that speaks to GitHub.

Owns transport, authentication, payloads, markers and every sentence we post. May import `domain`, `settings` and
`errors`; never tools, the agent or tasks. A new operation is a method of `GitHub` in `base.py` and of the client.
"""
