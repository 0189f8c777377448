"""The command line: ``jaxbandit run``, ``plan``, ``plot``, ``report``, ``sensitivity``, ``tune`` and others."""

import sys
from typing import Any


def main() -> None:
    """Runs the command line. Ctrl-C ends it in one line, also while its modules are imported."""
    try:
        from jaxbandit.cli.entry import main as run

        run()
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        raise SystemExit(130) from None


def __getattr__(name: str) -> Any:
    if name == "app":
        from jaxbandit.cli.entry import app

        return app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
