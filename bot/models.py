"""Makes models by their configured names: the API, what counts and repeats requests, and the spelling of calls."""

import asyncio
import random

from bot.errors import BotError, ModelError, OperatorError
from bot.facts import known_as, price, reply_cap
from bot.llm.base import Model
from bot.llm.meter import Meter
from bot.providers import MAKERS, Wanted
from bot.settings.catalogue import Catalogue, load_catalogue
from bot.settings.server import ServerSettings
from bot.tasks.desk import Tell


def make_model(settings: ServerSettings, catalogue: Catalogue, name: str, tell: Tell, meter: Meter) -> Model:
    """Make a model by its configured name, `provider:name`, with the models behind it that the operator named.

    Args:
        settings: the operator's.
        catalogue: what is known of models.
        name: which one.
        tell: hears what is amiss while a model is asked.
        meter: counts all requests.

    Raises:
        OperatorError: there is no such provider, or its key or address is missing.
    """
    from bot.llm.fallback import Fallback
    from bot.llm.retrying import Retrying

    # The hooks are plain; what they start is kept, since the loop itself holds tasks only weakly.
    telling: set[asyncio.Task[None]] = set()

    def say(text: str) -> None:
        task = asyncio.ensure_future(tell(text))
        telling.add(task)
        task.add_done_callback(telling.discard)

    def again(error: ModelError, delay_s: float) -> None:
        say(f"The model did not answer ({error}); asked again after {delay_s:.0f} s.")

    def fall(error: BotError, following: str) -> None:
        say(f"The model cannot be had ({error}); from here on `{following}` is asked.")

    def one(name: str) -> Model:
        model = _metered(settings, catalogue, name, meter)
        return Retrying(model, sleep=asyncio.sleep, random=random.random, on_retry=again)

    behind = [other for other in settings.models.fallback if other != name]
    return Fallback([one(name), *map(one, behind)], fall) if behind else one(name)


def _metered(settings: ServerSettings, catalogue: Catalogue, name: str, meter: Meter) -> Model:
    """Make one model: its API, what counts the requests, pictures where it sees any, and its spelling of calls."""
    from bot.llm.images import Blind
    from bot.llm.meter import Metered
    from bot.llm.spoken import spoken

    check_provider(name)
    entry = catalogue.entry(known_as(settings, name))
    wanted = Wanted(name, reply_cap(settings, catalogue, name), entry.thinking)
    model: Model = Metered(MAKERS[name.partition(":")[0]](settings, wanted), meter)
    return spoken(model if entry.images else Blind(model), settings.models.dialect or entry.dialect)


def check_provider(name: str) -> None:
    """Raise OperatorError where a model's provider is none that we know."""
    if name.partition(":")[0] not in MAKERS:
        raise OperatorError(f"The model {name!r} has an unknown provider; known: {', '.join(MAKERS)}")


def lacking(settings: ServerSettings) -> list[str]:
    """Say what the configured models still lack, a sentence each with its remedy; asks nothing of the network.

    Raises:
        OperatorError: the catalogue cannot be read.
    """
    catalogue = load_catalogue(settings.models.catalogue)
    meter, told = Meter(price(settings, catalogue)), []
    for name in dict.fromkeys(_named(settings)):
        try:
            _metered(settings, catalogue, name, meter)
        except OperatorError as error:
            told.append(f"{error}.")
    return told


def _named(settings: ServerSettings) -> list[str]:
    """List the models that runs may ask; without plans, none that makes them."""
    planner = [] if settings.mode == "act" else [settings.models.planner]
    return [settings.models.act, *planner, *settings.models.fallback]


def require(settings: ServerSettings) -> None:
    """Raise OperatorError where a configured model lacks something: before work begins that needs it."""
    if told := lacking(settings):
        raise OperatorError("\n".join(told).removesuffix("."))
