"""Searching parameters: the best values of a policy (``jb.tune``), the worst instance of a world (``jb.worst``)."""
