"""The console script ``jaxbandit``. It lies outside of the package, whose import takes a second that Ctrl-C may hit."""

import os
import shlex
import signal
import sys


def main() -> None:
    """Imports and runs the command line; Ctrl-C during the import ends with code 130 and one line."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # and not ignored, as in a process in the background
        signal.signal(signal.SIGINT, _stop)
    from jaxbandit.cli import main as run

    signal.signal(signal.SIGINT, before)
    run()


def _stop(number: int, frame: object) -> None:
    again = shlex.join(["jaxbandit", *sys.argv[1:]])
    os.write(2, f"\nstopped; nothing was begun. To start again: {again}\n".encode())
    os._exit(130)
