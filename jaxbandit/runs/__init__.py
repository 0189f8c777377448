"""The runner of studies, which plays the missing cells of a directory on one core, many cores or many machines.

``run_study`` is ``jb.run``, ``campaign`` compares a study with its directory, ``work`` groups cells by program,
``player`` plays them, ``teams`` shares them among processes, ``presence`` notices lost processes, ``forecast``
estimates their cost, ``precision`` decides how many seeds are enough, and ``coupled`` plays many points side by side
for searches and sensitivity studies.
"""

__all__ = ["campaign", "coupled", "forecast", "run_study", "teams"]
