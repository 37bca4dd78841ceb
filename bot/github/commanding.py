"""What is wrong with a command, and what cannot be done with it as things stand."""

from bot.github import pieces, text

_SHOWN = 80


def nothing_said(name: str, *, usage: str) -> str:
    """Refuse a command whose words are missing."""
    missing = {"ask": "question", "answer": "answer"}.get(name, "text")
    return f"The {missing} is missing: `{usage}`."


def bad_hash(given: str, *, usage: str) -> str:
    """Refuse what is no hash: a yes has to be exact."""
    return (
        f"{text.code(pieces.shorten(given, _SHOWN))} is no hash, which is 8 hexadecimal digits or more, alone on"
        f" the line. Usage: `{usage}`. Nothing was approved."
    )


def hash_apart(*, usage: str) -> str:
    """Refuse a yes behind which a hash stands on its own."""
    return f"A hash stands on the line of the command. Usage: `{usage}`. Nothing was approved."


def takes_no_words(given: str, *, usage: str, word: str) -> str:
    """Refuse words that nobody would read."""
    return (
        f"Nothing was done, since nobody would read {text.code(pieces.shorten(given, _SHOWN))}. Usage: `{usage}`;"
        f" `{pieces.plain(word)} fix <text>` says what to do."
    )


def bad_budget(given: str, *, usage: str) -> str:
    """Refuse what is no amount of dollars."""
    wrong = f"{text.code(pieces.shorten(given, _SHOWN))} is no amount" if given else "The amount is missing"
    return f"{wrong}: US dollars as `2` or `2.50`, above 0 and below 10,000. Usage: `{usage}`."


def bad_model(given: str, *, usage: str) -> str:
    """Refuse what is no name of a model."""
    shown = f"{text.code(pieces.shorten(given, _SHOWN))} is no model's name" if given else "The model's name is missing"
    return f"{shown}: `provider:name`. Usage: `{usage}`."


def busy(name: str, word: str) -> str:
    """Refuse what cannot be done while the task is at work."""
    word = pieces.plain(word)
    return (
        f"The task is at work, and `{name}` can be asked for when it is not: `{word} stop` ends it, `{word} fix <text>`"
        " tells it something now."
    )


def nothing_here(word: str) -> str:
    """Refuse what needs a task where there is none."""
    return f"There is no task on this thread. `{pieces.plain(word)} fix` starts one."


def no_branch(name: str, word: str) -> str:
    """Refuse what needs a branch that people see, where there is none yet."""
    return f"There is no open pull request for `{name}`. `{pieces.plain(word)} fix` makes one."


def no_budget_reached(word: str) -> str:
    """Refuse another budget where none was reached."""
    return (
        f"No run of this task waits for a budget: the last one did not end at its limit. `{pieces.plain(word)} fix`"
        " asks for another run."
    )


def model_refused(name: str) -> str:
    """Refuse a model that the operator does not allow."""
    return f"Who runs this server does not allow {text.code(name)}. Nothing was changed."


def model_chosen(name: str) -> str:
    """Say that further runs use a model."""
    return f"Further runs of this task use {text.code(name)}. What runs now goes on with its own."


def nothing_waits(word: str) -> str:
    """Refuse a decision where nothing waits for one."""
    return f"Nothing waits for a decision here. `{pieces.plain(word)} status` says how the task stands."


def no_call(short: str, word: str) -> str:
    """Refuse to deny a plan: people say what is wrong with it, or drop it."""
    word = pieces.plain(word)
    return f"What waits here is plan `{short}`: `{word} plan <text>` says what to change; `{word} stop` drops it."


def more_needed(login: str, needed: int, short: str, word: str) -> str:
    """Say that others have to approve a plan too."""
    return (
        f"{pieces.person(login)} approves plan `{short}`. It takes {needed} people here: another one writes"
        f" `{pieces.plain(word)} approve {short}`."
    )


def takes_several(needed: int, short: str, word: str) -> str:
    """Refuse to begin the work of a plan at one person's word."""
    word = pieces.plain(word)
    return (
        f"Plan `{short}` takes the approval of {needed} people here: `{word} approve {short}`. `{word} plan <text>`"
        " says what to change, or answers what it asks."
    )


def hash_needed(word: str, short: str = "<hash>") -> str:
    """Refuse a decision that could mean anything."""
    return f"Say what is decided: `{pieces.plain(word)} approve {short}`. Nothing was decided."


def plan_changed(short: str, word: str) -> str:
    """Refuse a yes from when others than we had changed what the plan's comment says."""
    return (
        f"Somebody had changed the comment that holds plan `{short}`, so it is put back as it was posted. Read it;"
        f" `{pieces.plain(word)} approve {short}` lets its work begin. Nothing was approved."
    )


def superseded(short: str, now: str, word: str) -> str:
    """Refuse the approval of a plan that is not the newest."""
    which = f"Plan `{short}`" if short else "The plan that stood here when you wrote that"
    return (
        f"{which} is superseded by plan `{now}`. Read that one; `{pieces.plain(word)} approve {now}` lets its work"
        " begin. Nothing was approved."
    )
