"""What the compiler says of a Python source, asked in a process of its own."""

from __future__ import annotations

import os
import signal
import sys
import warnings

_CAP_S = 5
_MOST_BYTES = 1000
_RESET = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGALRM)
"""Signals that mean something else to the helper, or must end the child."""


def complaint(source: bytes) -> str:
    """Return what is wrong with a source, as `Python 3.11, line 3: invalid syntax`; empty where nothing is.

    The compiler is native code that a text can keep busy, or make crash by its nesting: a child compiles, and what ends
    the child is no judgement.
    """
    reader, writer = os.pipe()
    # As for a command: a signal for the helper must not be taken for one of the child's meanwhile.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        pid = os.fork()
        if not pid:
            _compile(source, writer)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(writer)
    with os.fdopen(reader, "rb") as said:
        words = said.read()
    os.waitpid(pid, 0)
    return words.decode("utf-8", "replace")


def _compile(source: bytes, writer: int) -> None:
    """Compile, say what is wrong, and end; nothing of the source is run."""
    try:
        for number in _RESET:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        signal.alarm(_CAP_S)
        warnings.simplefilter("ignore")
        compile(source, "source", "exec", dont_inherit=True)
    except SyntaxError as error:
        version = f"Python {sys.version_info[0]}.{sys.version_info[1]}"
        os.write(writer, f"{version}, line {error.lineno}: {error.msg}".encode()[:_MOST_BYTES])
    finally:
        os._exit(0)
