"""Running a study: the cells that its directory lacks are played here, on many cores or on many machines.

``run_study`` is ``jb.run``, ``campaign`` compares a study with its directory, ``player`` plays cells, ``teams`` shares
them among processes, ``forecast`` estimates their cost, ``precision`` decides how many seeds are enough, and
``coupled`` plays many points side by side for searches and sensitivity studies.
"""
