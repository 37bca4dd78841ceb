"""The `issuewright` command: declares what there is, and turns errors into exit codes."""

import gc
import itertools
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer
from typer.core import TyperCommand

from bot import __version__
from bot.domain.task import Mode
from bot.errors import BotError, OperatorError

EXITS = """Exit codes: 0 done, 1 task failed, 2 usage, 3 waiting for a person, 4 configuration or permission,
5 budget reached, 130 stopped."""

GARBAGE = 100_000
"""Objects that are made, and not freed, before the youngest are looked through for garbage."""

app = typer.Typer(
    name="issuewright",
    help="Issuewright turns a labelled issue into a reviewed pull request, on your own machine and with any model.\n\n"
    "Begin with `issuewright demo`: no account, no key, nothing leaves the machine.\n\n" + EXITS,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Config = Annotated[Path | None, typer.Option("--config", help="The operator's YAML file.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="One JSON object a line on standard output.")]


def _version(value: bool) -> None:
    if value:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Keep the commands together."""


@app.command()
def demo(
    model: Annotated[
        str | None, typer.Option(help="A real model, as anthropic:NAME, with its key in the environment.")
    ] = None,
    wire: Annotated[
        Literal["anthropic", "openai-responses", "openai-chat", "google"],
        typer.Option(help="The API that the scripted model speaks."),
    ] = "anthropic",
    dialect: Annotated[
        Literal["native", "xml", "json", "prose"],
        typer.Option(help="How the scripted model calls tools: as the API does, or in text."),
    ] = "native",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the local GitHub; 0 takes a free one.")] = 0,
    stay: Annotated[
        bool | None, typer.Option("--stay/--no-stay", help="Stay up at the end, so that the pages can be looked at.")
    ] = None,
    state: Annotated[Path | None, typer.Option(help="Keep the state here instead of a temporary folder.")] = None,
    json: Json = False,
) -> None:
    """Play the whole story on a local GitHub with a scripted model: no account, no key, nothing leaves the machine."""
    from bot.cli.demo import story

    cast = story.Cast(model, wire, dialect)
    raise typer.Exit(story.play(cast=cast, port=port, stay=stay, state=state, as_json=json))


class _Resuming(TyperCommand):
    """A command of which `--resume` may stand without a task: then the newest is meant."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]  # what it is
        """Put in what is left out."""
        following = [*args[1:], "--"]
        bare = [word == "--resume" and after.startswith("-") for word, after in zip(args, following, strict=True)]
        words = (["--resume", "newest"] if left_out else [word] for word, left_out in zip(args, bare, strict=True))
        return super().parse_args(ctx, [*itertools.chain(*words)])


@app.command(cls=_Resuming)
def run(
    repo: Annotated[Path, typer.Option(help="A git repository on this machine.")] = Path(),
    issue: Annotated[Path | None, typer.Option(help="A Markdown file: title in the first line, text below it.")] = None,
    task: Annotated[str | None, typer.Option(help="What to do, in one sentence or many.")] = None,
    model: Annotated[str | None, typer.Option(help="The model, as anthropic:NAME.")] = None,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Work in the checkout itself instead of a clone.")
    ] = False,
    approve: Annotated[
        Literal["never", "edits", "all"],
        typer.Option(
            help="What is done without asking: never = ask before each change and command, edits = ask before "
            "commands, all = ask nothing."
        ),
    ] = "edits",
    mode: Annotated[
        Mode | None,
        typer.Option(
            help="plan = show a plan and ask, auto = ask only where the plan needs a decision, act = no plan. A new "
            "task acts, a resumed one keeps its mode.",
            show_default=False,
        ),
    ] = None,
    config: Config = None,
    resume: Annotated[
        str | None,
        typer.Option(
            metavar="[TASK]",
            help="Go on with a task after Ctrl-C, a kill or a failure, by the first digits of its id; without them "
            "with the newest that is not done. `--task` and `--issue` then say what else to do.",
            show_default=False,
        ),
    ] = None,
    state: Annotated[Path | None, typer.Option(help="Where work and records are kept.", show_default=False)] = None,
    json: Json = False,
) -> None:
    """Work on a repository of this machine, without GitHub; the result is a branch in it.

    Ctrl-C stops and keeps what was done; a second one leaves at once. Either way, `--resume` goes on.
    """
    from bot.cli.run import work

    raise typer.Exit(
        work(
            repo=repo,
            issue=issue,
            task=task,
            model=model,
            in_place=in_place,
            approve=approve,
            mode=mode,
            config=config,
            state=state,
            as_json=json,
            resume=resume,
        )
    )


@app.command()
def serve(
    config: Config = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.", show_default=False)] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on.", show_default=False)] = None,
) -> None:
    """Receive GitHub's deliveries and work on them."""
    from bot.cli.serve import serve as start

    raise typer.Exit(start(config=config, host=host, port=port))


@app.command()
def receive(
    event: Annotated[str, typer.Argument(help="The event's name, as `issues`.")],
    payload: Annotated[Path, typer.Argument(help="A file with the payload as GitHub sends it.")],
    config: Config = None,
    json: Json = False,
) -> None:
    """Play one delivery from a file, as if GitHub had sent it, and work on it here."""
    from bot.cli.receive import play

    raise typer.Exit(play(event, payload, config=config, as_json=json))


@app.command()
def hub(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = 3000,
    data: Annotated[Path | None, typer.Option(help="Folder for the repositories; a temporary one by default.")] = None,
    webhook: Annotated[str | None, typer.Option(help="Where the App's deliveries go.")] = None,
) -> None:
    """Start the local GitHub alone, with an App, a person and a repository in it."""
    from bot.cli.hub import start

    raise typer.Exit(start(port=port, data=data, webhook=webhook))


@app.command()
def models(config: Config = None, json: Json = False) -> None:
    """List the models we know: windows, prices, how they call tools, and which of them is used here."""
    from bot.cli.models import show

    raise typer.Exit(show(config=config, as_json=json))


@app.command()
def tasks(
    config: Config = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many tasks, the newest first.")] = 50,
    waiting: Annotated[bool, typer.Option("--waiting", help="Only those that wait for a person.")] = False,
    json: Json = False,
) -> None:
    """List this server's tasks: how each stands, what it waits for and what it cost."""
    from bot.cli.tasks import show

    raise typer.Exit(show(config=config, limit=limit, waiting=waiting, as_json=json))


@app.command()
def verify(
    pull: Annotated[str, typer.Argument(help="The pull request: its URL, or owner/name#number.")],
    config: Config = None,
    json: Json = False,
) -> None:
    """Run the checks of a pull request of Issuewright again, before and after its work, and compare with its table.

    Needs `GITHUB_TOKEN`, which only reads, and nothing else of the server that made it. The commands stand in the pull
    request: they are shown, and run in the sandbox. Exit code 1 says that something differs.
    """
    from bot.cli.verify import verify as again

    raise typer.Exit(again(pull, config=config, as_json=json))


@app.command()
def ci(
    config: Config = None,
    model: Annotated[str | None, typer.Option(help="The model, as anthropic:NAME.")] = None,
    json: Json = False,
) -> None:
    """Work on the event that started this GitHub Actions job.

    A job has no memory: nothing waits for people, and `mode: plan` is refused.
    """
    from bot.cli.ci import job

    raise typer.Exit(job(config=config, model=model, as_json=json))


def main() -> None:
    """Run the command; what we raise on purpose becomes one line and an exit code."""
    # What imports make stays: looking through it for garbage at every 700 objects costs a quarter of a start.
    gc.set_threshold(GARBAGE)
    try:
        app()
    except OperatorError as error:
        typer.echo(f"issuewright: {error}", err=True)
        sys.exit(4)
    except BotError as error:
        typer.echo(f"issuewright: {error}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        # Else the interpreter looks through all of it once more before it ends, for half a second.
        gc.freeze()
