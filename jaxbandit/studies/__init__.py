"""Study files: their text, their entries and sections, and the checks before the first round.

``study`` holds the whole of a study, ``entries`` makes policies and environments from its entries, and ``as_entry``
makes entries from policies and environments. ``sections`` and ``figures`` check the optional sections and figures,
``quick`` cuts a study down, and ``study_file`` reads the text and words its errors. ``keywords`` types the keyword
arguments of ``jb.Study`` and of the searches.
"""

__all__ = ["entries", "figures", "keywords", "limits", "recorded", "renamed", "sections", "shipped", "sources", "study"]
