"""The console script ``jaxbandit``. It lies outside of the package, whose import takes a second that Ctrl-C may hit."""

import os
import shlex
import signal
import sys


def main() -> None:
    """Imports and runs the command line; Ctrl-C during the import ends with code 130 and one line."""
    guard()
    from jaxbandit.cli import main as run

    if signal.getsignal(signal.SIGINT) is _stop:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


def guard() -> None:
    """Lets Ctrl-C end the process with one line, unless it is ignored, as in a process in the background."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)


def _stop(number: int, frame: object) -> None:
    again = shlex.join(["jaxbandit", *sys.argv[1:]])
    os.write(2, f"\nstopped; nothing was begun. To start again: {again}\n".encode())
    os._exit(130)
