"""Searches: the best parameters of a policy (``jb.tune``) and the worst instance of an environment (``jb.worst``)."""
