"""Every sentence that we post on GitHub: functions from our types to Markdown.

The first line says how it stands. Other people's and models' words are quoted and harmless; every refusal says what to
do next.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from bot.domain.command import Command, Help, Status, name_of
from bot.domain.context import ContextMeter, thousands
from bot.domain.plan import PlanItem, check_boxes
from bot.github import evidence, pieces, requests, text
from bot.github.evidence import EvidenceView
from bot.settings.repository import PATH

ProgressState = Literal["queued", "working", "done", "failed", "stopped", "waiting", "budget"]

TIMELINE_ENTRIES = 20
COMMAND_ROWS = 40
_PLAN_LINES = 30
_PLAN_TEXT = 200
_SUMMARY_LIMIT = 12_000
_REQUEST_LIMIT = 4_000
_CELL_LIMIT = 200
_ENDINGS = {"failed": "Failed", "stopped": "Stopped", "budget": "Budget reached"}


@dataclass(frozen=True, slots=True)
class CommandRow:
    """A command that the model ran through the harness."""

    command: str
    exit_code: int | None
    """None where it ran out of time."""
    seconds: float


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """One thing that happened, in one line."""

    at: datetime
    text: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Meter:
    """What a run has used."""

    turn: int
    max_turns: int
    tokens: int
    """Of the whole run so far."""
    cost_usd: float | None
    """None where the price is unknown."""
    model: str
    seconds: float | None = None
    context_tokens: int | None = None
    """Of the last request; with the next one, how full the model's window is."""
    context_window: int | None = None


@dataclass(frozen=True, slots=True)
class ProgressView:
    """All that the progress comment shows."""

    state: ProgressState
    marker: str
    word: str = "/agent"
    requester: str = ""
    reason: str = ""
    """One sentence for people."""
    position: int = 0
    """Runs before it in the queue."""
    about_plan: bool = False
    """Whether it is a plan that waits, and no question in the middle of the work."""
    about_calls: bool = False
    """Whether it is a call that waits for approval."""
    last_activity: TimelineEntry | None = None
    meter: Meter | None = None
    plan: Sequence[PlanItem] = ()
    """The model's own; its first thirty lines are shown."""
    evidence: EvidenceView = field(default_factory=EvidenceView)
    timeline: Sequence[TimelineEntry] = ()
    """Oldest first; the last twenty are shown."""
    notices: Sequence[str] = ()
    summary: str = ""
    """The model's own account, shown as its word."""
    pull_number: int | None = None
    pull_url: str = ""


@dataclass(frozen=True, slots=True)
class PullView:
    """All that the pull request's text shows."""

    marker: str
    requester: str
    request: str
    """What was asked, in the person's words."""
    summary: str
    """The model's own account, shown as its word."""
    meter: Meter
    sandbox: str
    """What held the commands, as `bubblewrap`; `none` is said plainly, and empty means that none were run."""
    closes: int | None = None
    """The issue that merging closes; None for a task that began on a pull request."""
    commits: int = 1
    """Commits of the task so far; the next three are of the last one."""
    files: int = 0
    insertions: int = 0
    deletions: int = 0
    evidence: EvidenceView = field(default_factory=EvidenceView)
    commands: Sequence[CommandRow] = ()
    settings: Mapping[str, object] = field(default_factory=dict)
    notices: Sequence[str] = ()
    """What a reviewer has to know."""
    unfinished: str = ""
    """Why the work ended early, as a sentence; empty where it is complete."""
    word: str = "/agent"


def progress(view: ProgressView) -> str:
    """Write the one comment of a task that is edited while it goes on."""
    parts = [_state_line(view), *(f"Note: {text.cell(notice)}" for notice in view.notices)]
    if view.meter is not None:
        parts.append(_meter(view.meter))
    if view.summary and view.state != "working":
        parts.append(pieces.word_of_model(view.meter.model if view.meter else "", view.summary, _SUMMARY_LIMIT))
    if view.plan:
        shown = [PlanItem(text.cell(pieces.shorten(item.text, _PLAN_TEXT)), item.done) for item in view.plan]
        parts.append(f"**Plan** of the model\n\n{check_boxes(shown[:_PLAN_LINES])}")
    if view.evidence.checks:
        parts.append("**Checks**, run by Issuewright itself")
    parts += evidence.short(view.evidence)
    if view.timeline:
        parts.append(_timeline(view.timeline))
    parts.append(next_steps(view))
    return text.cut("\n\n".join(parts), tail=view.marker)


def pull_title(subject: str, *, number: int) -> str:
    """Name the pull request in one visible line."""
    return text.title(subject, fallback=f"Changes for #{number}" if number else "Changes by Issuewright")


def pull_body(view: PullView) -> str:
    """Write the pull request's text: what was asked, what changed, and what shows that it works."""
    parts = [f"Closes #{view.closes}"] if view.closes is not None else []
    if view.unfinished:
        parts.append(f"**Unfinished.** {pieces.sentence(view.unfinished)}")
    parts += [f"**Note:** {text.cell(notice)}" for notice in view.notices]
    asked = f"### What was asked\n\nBy {pieces.person(view.requester)}:"
    parts.append(f"{asked}\n\n{text.quote(pieces.shorten(view.request.strip() or '(no text)', _REQUEST_LIMIT))}")
    changed = f"### What changed\n\n{_diff_stat(view)}"
    if view.summary.strip():
        changed += "\n\n" + pieces.word_of_model(view.meter.model, view.summary, _SUMMARY_LIMIT)
    parts.append(changed)
    parts.append("### Evidence\n\n" + evidence.section(view.evidence))
    if view.commands:
        parts.append(_command_details(view.commands))
    parts.append(_meter(view.meter))
    if view.settings:
        parts.append(_setting_details(view.settings))
    further = f"Comment `{pieces.plain(view.word)} fix <what to change>` for a further commit on this branch."
    parts.append(f"{_shut_in(view.sandbox)} {further} This text is written anew then: what is to stay is for comments.")
    hidden = "\n".join(filter(None, [evidence.block(view.evidence), view.marker]))
    return text.cut("\n\n".join(parts), tail=hidden)


def _shut_in(level: str) -> str:
    match level:
        case "":
            return "No commands were run, since nothing on the server can shut them in."
        case "none":
            return "Commands ran without a sandbox."
        case _:
            return f"Commands ran in the sandbox `{pieces.plain(level)}`."


def commit_message(subject: str, body: str, *, number: int, task_id: str, by: str = "") -> str:
    """Write a commit message: one line, the model's words without power, where it came from, and `co_author`."""
    line = text.title(text.neutralise_commit(subject), fallback="Apply changes", limit=72)
    words = text.neutralise_commit(pieces.shorten(body, _REQUEST_LIMIT))
    origin = [f"Issuewright-Task: {task_id}", *([f"Issuewright-Thread: #{number}"] if number else [])]
    return "\n\n".join(filter(None, [line, words, "\n".join(filter(None, [*origin, by]))])) + "\n"


def help_text(word: str, label: str, entries: Sequence[tuple[str, str]]) -> str:
    """Say what may be asked.

    Args:
        word: the command word.
        label: the label that starts a task.
        entries: usage and explanation of each command, as the catalogue has them.
    """
    begin = (
        f"Issuewright works on an issue when someone with write access adds the label `{pieces.plain(label)}`"
        f" or comments `{pieces.plain(word)} fix`."
    )
    rows = [f"| {text.cell_code(usage)} | {text.cell(what)} |" for usage, what in entries]
    table = "\n".join(["| Comment | What happens |", "|---|---|", *rows])
    end = "A command is the first line of a comment. Removing the label or closing the thread stops the work."
    return f"{begin}\n\n{table}\n\n{end}"


def status(view: ProgressView | None, *, word: str) -> str:
    """Answer how the task stands; None where there is none on this thread."""
    if view is None:
        return f"There is no task on this thread. `{pieces.plain(word)} fix` starts one."
    parts = [_state_line(view)]
    if view.meter is not None:
        parts.append(_meter(view.meter))
    return "\n\n".join(parts)


def nothing_to_stop(word: str) -> str:
    """Answer a stop where nothing runs."""
    return f"Nothing is running on this thread. `{pieces.plain(word)} status` says how the last run ended."


def not_allowed(login: str, command: Command, permission: str) -> str:
    """Refuse a person who may not do this."""
    needs = "read" if isinstance(command, Status | Help) else "write"
    return (
        f"{pieces.person(login)} may not use `{name_of(command)}` here: it needs {needs} access to this repository,"
        f" and the role is `{pieces.plain(permission)}`. A maintainer can give access, or the command in their place."
    )


def unknown_command(name: str, *, word: str, did_you_mean: str | None, known: Sequence[str]) -> str:
    """Say that a command is unknown, and which are known."""
    guess = f" Did you mean `{pieces.plain(word)} {did_you_mean}`?" if did_you_mean else ""
    names = ", ".join(f"`{name}`" for name in known)
    return f"There is no command {text.code(pieces.shorten(name, 40))}.{guess} Known commands: {names}."


def unknown_option(option: str, *, usage: str, did_you_mean: str | None) -> str:
    """Say that an option is unknown, and how the command is written."""
    guess = f" Did you mean `{did_you_mean}`?" if did_you_mean else ""
    return f"There is no option {text.code(pieces.shorten(option, 40))}.{guess} Usage: `{usage}`."


def bad_option(option: str, *, problem: str, usage: str) -> str:
    """Say what is wrong with an option's value."""
    return f"The option `{option}` {problem}. Usage: `{usage}`."


def unknown_actor() -> str:
    """Refuse a request whose author GitHub does not name."""
    return "GitHub does not say who asked for this, so nothing was started. Somebody with write access can ask again."


def no_default_branch() -> str:
    """Refuse work on a repository that has nothing to stand on."""
    return (
        "This repository has no default branch yet, so there is nothing to work on. Make a first commit and ask again."
    )


def fork_refused(word: str) -> str:
    """Refuse work on a pull request from a fork."""
    return (
        "This pull request comes from a fork, to which Issuewright does not push. Open an issue that says what to"
        f" change and comment `{pieces.plain(word)} fix` there, or push the branch to this repository."
    )


def config_broken(path: str, problem: str, *, line: int | None = None, column: int | None = None) -> str:
    """Say that the repository's file cannot be used, where and why."""
    place = f", line {line}" if line is not None else ""
    place += f", column {column}" if line is not None and column is not None else ""
    return (
        f"`{pieces.plain(path)}` on the default branch cannot be used{place}:\n\n"
        f"{text.quote(pieces.shorten(problem, _REQUEST_LIMIT))}\n\n"
        "Nothing was started. Correct the file on the default branch and ask again."
    )


def thread_closed() -> str:
    """Refuse work on a closed thread; what is merged cannot be opened again."""
    return "This thread is closed. Reopen it or begin another one, and ask there."


def _state_line(view: ProgressView) -> str:
    reason = f" {pieces.sentence(view.reason)}" if view.reason else ""
    match view.state:
        case "queued":
            return f"**Queued**, {f'{view.position} before it' if view.position else 'next in turn'}.{reason}"
        case "working":
            turn = f", turn {view.meter.turn} of at most {view.meter.max_turns}" if view.meter else ""
            return f"**Working**{turn}.{reason}{_last_activity(view.last_activity)}"
        case "done":
            return f"**Done**: {_pull_link(view) or 'nothing had to be changed'}.{reason}"
        case "waiting":
            return f"**{_waiting(view)}**.{reason}"
        case "failed" | "stopped" | "budget":
            link = _pull_link(view)
            kept = f" What was done so far is in {link}." if link else ""
            return f"**{_ENDINGS[view.state]}**.{reason}{kept}"


def _waiting(view: ProgressView) -> str:
    if view.about_calls:
        return "Waiting for approval"
    return "A plan waits" if view.about_plan else "Waiting for an answer"


def _last_activity(entry: TimelineEntry | None) -> str:
    if entry is None:
        return ""
    return f" Last activity {pieces.clock(entry.at)}: {_cell(entry.text)}"


def next_steps(view: ProgressView) -> str:
    """Say what people can do now."""
    word = pieces.plain(view.word)
    match view.state:
        case "queued" | "working":
            return f"`{word} stop` ends it and keeps what was done; `{word} fix <text>` adds to the request."
        case "waiting":
            if view.about_calls:
                return requests.how_to_approve(word)
            return pieces.how_to_decide(word) if view.about_plan else pieces.how_to_answer(word)
        case "done" if view.pull_number is not None:
            return f"Review the pull request; `{word} fix <text>` on it asks for a further commit."
        case "budget":
            return pieces.another_budget(word, PATH)
        case _:
            return f"`{word} fix <text>` starts a further run; `{word} help` lists the commands."


def _pull_link(view: ProgressView) -> str:
    if view.pull_number is None:
        return ""
    return f"[#{view.pull_number}]({view.pull_url})" if view.pull_url else f"#{view.pull_number}"


def _meter(meter: Meter) -> str:
    parts = [
        f"turn {meter.turn} of {meter.max_turns}",
        f"{pieces.count(meter.tokens)} tokens",
        pieces.cost(meter.cost_usd),
    ]
    if meter.context_tokens is not None:
        tokens, window = meter.context_tokens, meter.context_window
        parts.append(str(ContextMeter(tokens, window)) if window else f"ctx {thousands(tokens)}")
    if meter.seconds is not None:
        parts.append(pieces.duration(meter.seconds))
    parts.append(f"`{pieces.plain(meter.model)}`")
    return " · ".join(parts)


def _diff_stat(view: PullView) -> str:
    files, added, removed = (
        f"{number} {noun}" if number == 1 else f"{number} {noun}s"
        for number, noun in ((view.files, "file"), (view.insertions, "line"), (view.deletions, "line"))
    )
    last = f"In the last of {view.commits} commits: " if view.commits > 1 else ""
    return f"{last}{files} changed, {added} added, {removed} removed."


def _command_details(commands: Sequence[CommandRow]) -> str:
    shown = commands[-COMMAND_ROWS:]
    left_out = len(commands) - len(shown)
    rows = [f"| {_code_cell(row.command)} | {pieces.exit_code(row.exit_code)} | {row.seconds:.1f} |" for row in shown]
    note = f"\n\nThe first {left_out} are left out." if left_out else ""
    table = "\n".join(["| Command | Exit | Seconds |", "|---|--:|--:|", *rows])
    return pieces.details(f"Commands that the model ran ({len(commands)})", table + note)


def _setting_details(settings: Mapping[str, object]) -> str:
    rows = [f"| {text.cell_code(name)} | {_code_cell(str(value))} |" for name, value in sorted(settings.items())]
    return pieces.details("Settings that applied", "\n".join(["| Setting | Value |", "|---|---|", *rows]))


def _timeline(entries: Sequence[TimelineEntry]) -> str:
    shown = entries[-TIMELINE_ENTRIES:]
    lines = [
        f"- {pieces.clock(entry.at)} {'**failed** ' if entry.is_error else ''}{_cell(entry.text)}" for entry in shown
    ]
    count = f"last {len(shown)} of {len(entries)}" if len(shown) < len(entries) else str(len(entries))
    return pieces.details(f"What happened ({count})", "\n".join(lines))


def _cell(words: str) -> str:
    return pieces.cell(words, _CELL_LIMIT)


def _code_cell(words: str) -> str:
    return pieces.code_cell(words, _CELL_LIMIT)
