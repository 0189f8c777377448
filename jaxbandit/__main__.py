"""``python -m jaxbandit`` is the command line."""

from jaxbandit.cli import main

main()
