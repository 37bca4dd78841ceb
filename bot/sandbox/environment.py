"""The environment of tools: made from nothing, so that no secret of the server can be in it."""

from collections.abc import Mapping, Sequence
from pathlib import Path

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

MARK = "ISSUEWRIGHT_SANDBOX"
"""Names the workspace in each process, so that what lost its helper can be found."""

_QUIET = {
    "CI": "true",
    "DEBIAN_FRONTEND": "noninteractive",
    "GIT_EDITOR": "true",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "LESS": "-FX",
    "MANPAGER": "cat",
    "NONINTERACTIVE": "1",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "PIP_PROGRESS_BAR": "off",
    "TERM": "dumb",
    "TQDM_DISABLE": "1",
}
"""Nobody is there to answer a question or to look at colours."""

_TRUE = {"PYTHONDONTWRITEBYTECODE": "1"}
"""Python takes compiled code for current when size and second of its source are the same: an edit right after a run of
the tests would not be seen by the next run."""

_OWNER = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
"""The work tree may belong to another uid than its parent folders; git would refuse it."""


def environment(
    home: str, temporary: str, mark: str, extra: Mapping[str, str], programs: Sequence[Path] = ()
) -> dict[str, str]:
    """Make the whole environment of the helper and its commands.

    Args:
        home: the workspace's own home.
        temporary: where passing files go.
        mark: differs for each workspace on the machine.
        extra: wins over everything, but for `PATH`, which comes first only; `VIRTUAL_ENV` also puts its programs there.
        programs: folders that come before the machine's own on the path.
    """
    own = [f"{extra['VIRTUAL_ENV']}/bin"] if "VIRTUAL_ENV" in extra else []
    path = ":".join(dict.fromkeys(filter(None, [*extra.get("PATH", "").split(":"), *own, *map(str, programs), PATH])))
    made = {
        "PATH": path,
        "HOME": home,
        "TMPDIR": temporary,
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        **_QUIET,
        **_TRUE,
        **_OWNER,
        MARK: mark,
    }
    return made | {name: value for name, value in extra.items() if name != "PATH"}
