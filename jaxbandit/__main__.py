"""``python -m jaxbandit`` is the command line."""

from jaxbandit.cli.entry import main

main()
