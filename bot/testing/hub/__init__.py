"""A local GitHub: state first, HTTP second; it knows nothing of the bot.

Owns everything under this folder and imports nothing of `bot` outside it. `hub.Hub` is the state that tests and
seeding scripts call directly; `server.HubServer` serves it over REST, git smart HTTP, signed webhooks, GraphQL and
pages. A new REST route is one line in a table of `rest/` (method, GitHub's own path template, what it needs, handler)
plus its handler.
"""
