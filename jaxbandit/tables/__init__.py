"""Tables of measured losses: readers of the files that people keep them in, and the inspection of their tails.

``readers`` turns a file into an array, ``aslib`` reads scenarios of the algorithm selection library, and ``inspection``
estimates tails, gap and scale of a table before anything is played on it. ``succession`` measures how far successive
rounds depend on each other.
"""

__all__ = ["inspection", "readers"]
