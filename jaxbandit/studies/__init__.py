"""Study files: their text, their entries and sections, and the checks that come before the first round.

``study`` holds the whole of a study, ``entries`` makes policies and environments of its entries and ``as_entry`` goes
the way back, ``sections`` and ``figures`` check what else a study asks for, ``quick`` cuts a study down, and
``study_file`` reads the text and puts what is wrong with it into words.
"""
