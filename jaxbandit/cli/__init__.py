"""The command line: ``jaxbandit run``, ``plan``, ``plot``, ``report``, ``sensitivity``, ``tune`` and others."""

from jaxbandit.cli.app import app as app
from jaxbandit.cli.app import main as main
