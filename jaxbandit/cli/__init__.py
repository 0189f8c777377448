"""The command line: ``jaxbandit run``, ``plan``, ``plot``, ``report``, ``sensitivity``, ``tune`` and others."""

from jaxbandit.cli.entry import app as app
from jaxbandit.cli.entry import main as main
