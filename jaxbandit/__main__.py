"""``python -m jaxbandit`` is the command line."""

from jaxbandit.cli.app import main

main()
