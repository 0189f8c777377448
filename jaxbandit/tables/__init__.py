"""Tables of measured losses: readers of the files that people keep them in, and the inspection of their tails.

``readers`` makes an array of a file, ``aslib`` reads scenarios of the algorithm selection library, and ``inspection``
says what a table shows before anybody plays on it.
"""
