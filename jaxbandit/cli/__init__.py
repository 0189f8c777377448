"""The command line: ``jaxbandit run``, ``plan``, ``plot``, ``report``, ``sensitivity``, ``tune`` and others.

``entry`` starts the command that the user typed, ``commands`` and ``options`` define names and help texts once, and
``play``, ``look``, ``search`` and ``reference`` hold the commands in the groups of ``jaxbandit --help``.
"""

from jaxbandit.cli.entry import app, main

__all__ = ["app", "main"]
