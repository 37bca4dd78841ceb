"""Read-only pages of the local GitHub, for looking in: `routes(hub)` goes to `HubServer(extra_routes=...)`.

Everything is shown, private repositories too: whoever reaches the port of a local GitHub owns its data anyway. No page
changes anything and none needs JavaScript. Addresses are those that the REST API gives as `html_url`.
"""

from bot.testing.hub.pages.app import routes

__all__ = ["routes"]
