"""`issuewright ci`: works on the event that started a GitHub Actions job, with the job's own token."""

import asyncio
import hashlib
import hmac
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path

from bot import bootstrap, log
from bot.cli.delivery import play
from bot.cli.sandboxing import sheltered
from bot.cli.screen import Screen, exit_code
from bot.domain.task import Run
from bot.errors import OperatorError
from bot.github import comments
from bot.github.webhooks import BadPayload, decode, to_trigger
from bot.sandbox.choose import Chosen
from bot.settings.load import environment
from bot.settings.server import ServerSettings
from bot.store.base import Delivery, TaskStore
from bot.tasks.standing import Standing, progress_view, stand

SUMMARY_BYTES = 900_000
"""GitHub drops a job summary of more than 1 MiB whole."""


@dataclass(frozen=True, slots=True)
class Job:
    """What the runner says of its job."""

    event: str
    payload: Path
    token: str
    api_url: str
    server_url: str
    temp: Path
    output: Path | None
    """Where outputs are written; None outside a runner."""
    summary: Path | None


def job(*, config: Path | None, model: str | None, as_json: bool) -> int:
    """Work on the job's event; returns the exit code."""
    this = _read(environment())
    flags: dict[str, object] = {
        "models.act": model,
        "state_dir": str(this.temp / "issuewright"),
        "github.api_url": this.api_url,
        "github.web_url": this.server_url,
    }
    settings = bootstrap.load(config, flags)
    log.register_secret(this.token)
    screen = Screen(as_json=as_json)
    chosen = sheltered(settings, screen.say)
    return asyncio.run(_work(settings, this, screen, chosen))


def _read(environ: MutableMapping[str, str]) -> Job:
    missing = [name for name in ("GITHUB_EVENT_NAME", "GITHUB_EVENT_PATH", "GITHUB_TOKEN") if not environ.get(name)]
    if missing:
        raise OperatorError(
            f"`ci` runs in a GitHub Actions job, and {', '.join(missing)} is not set; "
            "the action passes the token as `GITHUB_TOKEN`"
        )
    # The model's commands must not inherit it.
    token = environ.pop("GITHUB_TOKEN")
    return Job(
        event=environ["GITHUB_EVENT_NAME"],
        payload=Path(environ["GITHUB_EVENT_PATH"]),
        token=token,
        api_url=environ.get("GITHUB_API_URL") or "https://api.github.com",
        server_url=environ.get("GITHUB_SERVER_URL") or "https://github.com",
        temp=Path(environ.get("RUNNER_TEMP") or "/tmp"),  # noqa: S108 - the runner names its own
        output=_path(environ, "GITHUB_OUTPUT"),
        summary=_path(environ, "GITHUB_STEP_SUMMARY"),
    )


def _path(environ: Mapping[str, str], name: str) -> Path | None:
    return Path(environ[name]) if environ.get(name) else None


async def _work(settings: ServerSettings, this: Job, screen: Screen, chosen: Chosen) -> int:
    try:
        body = this.payload.read_bytes()
        trigger = to_trigger(this.event, decode(body))
    except OSError as error:
        raise OperatorError(f"{this.payload}: {error.strerror}") from error
    except BadPayload as error:
        raise OperatorError(f"{this.payload}: {error}") from error
    key = trigger.context.event_key if trigger else ""
    stores, app = bootstrap.open_stores(settings), bootstrap.make_app(settings, token=this.token)
    await stores.tasks.set_state_key(_state_key(settings))
    try:
        # A job that is run again has an empty store: the same event has to give the same task.
        task_id = hashlib.sha256(f"issuewright ci {key}".encode()).hexdigest()[:32]
        delivery = Delivery(f"ci-{task_id}", this.event, key or None, body, bootstrap.now())
        played = await play(settings, stores, app, delivery, screen, chosen=chosen, ids=lambda: task_id, served=False)
        if played.run is None:
            _write(this.output, {"conclusion": "ignored"})
            return 0
        await _tell(this, stores.tasks, played.run, settings.command)
        return exit_code(played.run)
    finally:
        await app.close()
        await stores.close()


def _state_key(settings: ServerSettings) -> bytes:
    """Derive the key of our markers from the model's, so that a later job knows an earlier one's comments."""
    access = settings.access_to(settings.models.act.partition(":")[0])
    key = access.api_key.get_secret_value() if access is not None and access.api_key else ""
    return hmac.digest(key.encode(), b"issuewright markers", "sha256")


async def _tell(this: Job, store: TaskStore, run: Run, word: str) -> None:
    task = await store.task(run.task_id)
    standing = stand(await store.events(run.task_id), run.seq)
    _write(this.output, _outputs(standing, run, task.branch if task else ""))
    if this.summary is not None:
        text = comments.progress(progress_view(standing, marker="", word=word))
        with this.summary.open("a", encoding="utf-8") as file:
            file.write(text.encode()[:SUMMARY_BYTES].decode(errors="ignore") + "\n")


def _outputs(standing: Standing, run: Run, branch: str) -> dict[str, str]:
    finished, pull = standing.finished, standing.pull
    return {
        "conclusion": run.outcome or "failed",
        "pr-url": pull.url if pull else "",
        "branch": standing.pushed.branch if standing.pushed else branch,
        "task-id": run.task_id,
        "cost-usd": "" if finished is None or finished.cost_usd is None else f"{finished.cost_usd:.4f}",
        "tokens": str(finished.tokens if finished else 0),
    }


def _write(output: Path | None, values: Mapping[str, str]) -> None:
    if output is None:
        return
    with output.open("a", encoding="utf-8") as file:
        for name, value in values.items():
            # None of these values can hold a line end, which would begin another output.
            file.write(f"{name}={' '.join(value.split())}\n")
