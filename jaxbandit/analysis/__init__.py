"""Analysis of results: means with intervals, quantiles, growth of regret, rankings, and the measured Table 1.

``statistics`` has error bars for skewed samples, ``growth`` the slopes of regret, ``gaps`` the worst gap of a family of
environments, ``ranks`` paired tests between policies, ``risk`` lost games and what a win in the mean needs,
``final`` the summary of a study at its last round, ``rounding`` numbers to the place of their errors, ``escapes``
labels that are harmless in tables, and ``comparison`` the measured Table 1.
"""

__all__ = [
    "comparison",
    "escapes",
    "final",
    "gaps",
    "growth",
    "multiples",
    "outcomes",
    "paired",
    "ranks",
    "risk",
    "rounding",
    "statistics",
    "table",
]
