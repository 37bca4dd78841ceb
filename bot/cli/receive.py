"""`issuewright receive`: plays one delivery from a file."""

import asyncio
import hashlib
from pathlib import Path

from bot import bootstrap
from bot.cli.delivery import play as play_delivery
from bot.cli.sandboxing import sheltered
from bot.cli.screen import Screen, exit_code
from bot.errors import OperatorError
from bot.github.webhooks import BadPayload, decode
from bot.sandbox.choose import Chosen
from bot.settings.server import ServerSettings
from bot.store.base import Delivery


def play(event: str, payload: Path, *, config: Path | None, as_json: bool) -> int:
    """Play a payload as a delivery of this event; returns the exit code."""
    settings = bootstrap.load(config, {})
    screen = Screen(as_json=as_json)
    try:
        body = payload.read_bytes()
        decode(body)
    except OSError as error:
        raise OperatorError(f"{payload}: {error.strerror}") from error
    except BadPayload as error:
        raise OperatorError(f"{payload}: {error}") from error
    chosen = sheltered(settings, screen.say)
    return asyncio.run(_play(settings, event, body, screen, chosen))


async def _play(settings: ServerSettings, event: str, body: bytes, screen: Screen, chosen: Chosen) -> int:
    stores, app = bootstrap.open_stores(settings), bootstrap.make_app(settings)
    # The same payload played again is the same delivery.
    guid = f"played-{hashlib.sha256(event.encode() + b' ' + body).hexdigest()[:32]}"
    delivery = Delivery(guid, event, None, body, bootstrap.now())
    try:
        played = await play_delivery(
            settings, stores, app, delivery, screen, chosen=chosen, ids=bootstrap.new_id, served=True
        )
        return exit_code(played.run) if played.run else 0
    finally:
        await app.close()
        await stores.close()
