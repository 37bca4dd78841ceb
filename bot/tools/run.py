"""`run`: a command in the workspace."""

from collections.abc import Mapping, Sequence

from pydantic import Field

from bot.domain.messages import ToolSpec
from bot.errors import ToolError
from bot.sandbox.base import ExecResult
from bot.sandbox.output import clip
from bot.tools.arguments import Arguments, parse, specify
from bot.tools.base import ToolContext, ToolOutput
from bot.tools.deletions import begin, complaint
from bot.tools.hints import hint

LONGEST_S = 600
_DEFAULT_S = 120
_CHARS = 16_000
"""Of both streams; the 99th percentile of real commands is 7,097."""
_ERROR_CHARS = 6_000
"""Of standard error where both streams are long."""


class _Arguments(Arguments):
    command: str = Field(min_length=1)
    timeout_s: int = Field(default=_DEFAULT_S, ge=1, description="Seconds.")
    requires_approval: bool = Field(default=False, description="True asks a person first.")


class Run:
    """Runs what the model asks for; a failure of the command is a result like any other."""

    reads_only: bool = False

    def __init__(self, longest_s: int = LONGEST_S, network: Sequence[str] = ()) -> None:
        """Make one.

        Args:
            longest_s: seconds that one command may take, whatever the model asks for.
            network: hosts and presets that commands may reach.
        """
        self._longest_s = longest_s
        self._network = network
        self.spec: ToolSpec = specify(
            "run",
            f"Run a bash command at the root of the repository; no input, at most {longest_s} s, nothing outlives it.",
            _Arguments,
        )

    async def call(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        """Run it and show both ends of what it printed."""
        asked = parse(_Arguments, arguments)
        if asked.requires_approval:
            raise ToolError(
                "needs_agreement: a person has to allow this command, and nobody can be asked from here, so it was "
                "not run. Find a way that needs nobody's approval, or ask first with `ask_person`."
            )
        timeout_s = min(asked.timeout_s, self._longest_s)
        await begin(context)
        result = await context.sandbox.run(asked.command, timeout_s=timeout_s, output_chars=_CHARS)
        too_much = await complaint(context)
        # Several commands have the exit code of the last one, as of `tail`.
        failed = result.exit_code != 0 or bool(set(asked.command) & set("|;\n"))
        told = hint(f"{result.stdout}\n{result.stderr}", self._network) if failed else ""
        return ToolOutput(
            "\n".join(filter(None, [_text(result, timeout_s), told, too_much])),
            asked.command,
            changed=None,
            is_error=bool(too_much),
            command=asked.command,
            exit_code=result.exit_code,
        )


def _text(result: ExecResult, timeout_s: int) -> str:
    first = f"exit code: {result.exit_code}"
    if result.timed_out:
        first = f"timed out after {timeout_s} s; all that it started was ended"
    errors = clip(result.stderr, max(_ERROR_CHARS, _CHARS - len(result.stdout)))
    output = clip(result.stdout, max(0, _CHARS - len(errors)))
    sections = [("stdout", output), ("stderr", errors)]
    return "\n".join([first, *(f"{name}:\n{text.rstrip()}" for name, text in sections if text.strip())])
