"""What a command is told that could not install or fetch: programs name the symptom, and never what is behind it."""

import re
from collections.abc import Sequence

_UNREACHED = re.compile(
    r"could ?n[o']t resolve|failed to resolve|getaddrinfo|name resolution|name or service not known|no such host"
    r"|network is unreachable|dial tcp|no matching distribution found|--offline was specified"
    r"|is not on the allow-list|received HTTP code 403 from proxy|tunnel connection failed"
    # Else each ModuleNotFoundError would be one.
    r"|(?-i:\bE(?:NOTFOUND|AI_AGAIN|NETUNREACH|NOTCACHED)\b)",
    re.IGNORECASE,
)
"""What curl, Python, pip, npm, Node, Go, Cargo and git say. An offline pip says of each package that there is none."""
_READ_ONLY = re.compile(r"(?:read-only file system|permission denied)[^\n]*/site-packages", re.IGNORECASE)
"""What pip says of an environment that the harness has set up."""
_OWN = (
    "Note of the harness: what the set-up installed can be read and not written. Install into an environment of your "
    "own: `python3 -m venv ~/venv && ~/venv/bin/pip install …`. What the project's files declare by the end, the "
    "harness installs before its checks."
)


def hint(output: str, network: Sequence[str]) -> str:
    """Say what is behind a failure that looks as if nothing could be reached or installed; empty for others.

    Args:
        output: of a command that failed.
        network: hosts and presets that the model's commands may reach.
    """
    notes = [_OWN] if _READ_ONLY.search(output) else []
    if _UNREACHED.search(output):
        reach = f"reach only this: {', '.join(network)}" if network else "have no network"
        notes.append(
            f"Note of the harness: commands here {reach}. Only people can change that, with the operator's setting "
            "`sandbox.network` and the repository's `network`. Finish and say what is left, or ask_person."
        )
    return "\n".join(notes)
