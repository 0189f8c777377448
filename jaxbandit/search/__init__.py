"""Searches: the best parameters of a policy (``jb.tune``) and the worst instance of an environment (``jb.worst``).

``front`` holds the two functions, ``families`` the sets of environments that they search, and ``study`` runs the
searches that a study file asks for. ``tuning`` and ``adversary`` are the two searches; they move by ``descent`` or by
``evolution`` inside of ``boxes``, play their games in an ``arena``, and store every step in ``traces``. ``tables`` and
``figures`` show the results.
"""

__all__ = ["families", "figures", "front", "study", "tables"]
