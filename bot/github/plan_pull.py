"""What is said around a plan that is put as a pull request: the file, the pull request, and what a review may want."""

from bot.github import pieces, questions, text
from bot.github.questions import PlanView

_SHORT = 12


def title(subject: str, *, number: int) -> str:
    """Name the pull request that holds a plan."""
    return text.title(f"Plan: {subject}", fallback=f"Plan for #{number}")


def commit_message(short: str, *, number: int, gone: bool = False) -> str:
    """Write the message of the commit that puts the plan's file, or takes it away."""
    return f"Remove the plan for #{number}" if gone else f"Plan {short} for #{number}"


def file(view: PlanView, whole: str) -> str:
    """Write the file that holds a plan.

    Args:
        view: the plan.
        whole: all digits of its hash.
    """
    return "\n\n".join(
        [
            f"# Plan `{view.hash}`",
            *questions.about(view),
            f"Hash of this plan, in full: `{whole}`. This file is taken away before the work is committed.",
        ]
    )


def body(view: PlanView, *, path: str, number: int) -> str:
    """Write the text of the pull request that holds a plan, without its mark."""
    word = pieces.plain(view.word)
    return "\n\n".join(
        [
            f"**Plan `{view.hash}`** for #{number}, in {text.code(path)}. {pieces.sentence(view.waits)}",
            _how(view, word),
        ]
    )


def _how(view: PlanView, word: str) -> str:
    yes = (
        f"`{word} approve {view.hash}`, or a review that approves the present head, lets the work begin: on this"
        " branch, and without that file."
    )
    change = (
        f"`{word} plan <text>`, or a review that requests changes, has the plan revised; what people said on its lines"
        " is read with it."
    )
    answer = f"- `{word} answer <text>` answers what it asks, and lets the work begin.\n" if view.questions else ""
    other = f"`{word} ask <question>` asks about it; `{word} stop` drops it. Other comments start nothing."
    return f"- {yes}\n{answer}- {change}\n- {other}"


def comment(view: PlanView, *, path: str, number: int) -> str:
    """Write the comment that leads people to the plan.

    Args:
        view: the plan.
        path: of the file that holds it.
        number: of the pull request.
    """
    place = f"It is {text.code(path)} in #{number}, to be reviewed line by line"
    yes = f"`{pieces.plain(view.word)} approve {view.hash}` lets the work begin"
    return f"{questions.waiting(view)}\n\n{place}; {yes}."


def not_put(why: str) -> str:
    """Say why a plan is no pull request although it was to be one."""
    return f"**Note:** the plan could not be put as a pull request, so it stands here. {pieces.sentence(why)}"


def no_drafts() -> str:
    """Say that the repository takes no drafts."""
    return "This repository allows no drafts."


def not_ours(number: int) -> str:
    """Say that somebody else's pull request is in the way."""
    return f"#{number}, which is not ours, carries the branch."


def old_head(looked_at: str | None, head: str, short: str, word: str) -> str:
    """Refuse a review of another head than the present one."""
    seen = f"`{looked_at[:_SHORT]}`" if looked_at else "a head that is no more"
    return (
        f"That review approves {seen}, and the present head is `{head[:_SHORT]}`. Approve that one, or say"
        f" `{pieces.plain(word)} approve {short}`. Nothing was approved."
    )


def other_file(path: str, head: str, short: str, word: str) -> str:
    """Refuse a yes to a head whose file is not the plan that waits."""
    word = pieces.plain(word)
    return (
        f"At the head `{head[:_SHORT]}`, {text.code(path)} is not plan `{short}` as it was put."
        f" Nothing was approved: take back what changed it, or `{word} plan <text>` has it put anew."
    )
