"""``python -m jaxbandit`` is the command line."""

from jaxbandit_launcher import main

main()
