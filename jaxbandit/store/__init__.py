"""The store of a study's results: a directory of whole files, each named by everything that determines its numbers.

``directory`` creates and locks the directory, ``cells`` names the files that a study needs, ``cellfile`` writes and
reads one of them, ``cover`` compares needed seeds with stored ones, ``writing`` writes files to the disk while the
next games are played, and ``assemble`` opens a directory as one dataset. ``seal`` gives every file a digest and
compares it, ``manifest`` checks the content of ``store.json``, and ``form`` that of a dataset. ``parts`` keeps finished
games of certificates and sensitivity studies, so that these continue after an interruption.
"""

__all__ = ["assemble", "cellfile", "cells", "cover", "directory", "form", "parts", "seal", "writing"]
