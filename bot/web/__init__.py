"""The face to the network: the door for GitHub's deliveries, health, and a small API to look at tasks.

`webhook` is the door and stands in front of everything; `app` puts it together with the rest. May import
`bot.store.base`, `bot.github.webhooks`, `bot.domain`, `bot.log` and `bot.errors`, never the agent or a model. A new
page is a router in `app`.
"""
