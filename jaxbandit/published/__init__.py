"""The published numbers: the generated tables of README and docs, each with the study and the command that make it.

``registry`` lists the tables, ``tables`` makes them from results, ``blocks`` finds them between marks on the pages,
``digests`` has the short digests that show whether a study would still give the same numbers, and ``reproduce`` plays
studies and rewrites or compares their tables.
"""

__all__ = ["blocks", "reproduce"]
