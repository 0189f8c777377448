"""Results as labelled datasets, with the names, dimensions and labels of their variables.

``labels`` names variables, policies and environments; ``results`` builds the dataset and its
summary; ``pairs`` prepares policies and environments for the checks of assumptions.
"""

__all__ = ["labels", "pairs", "results"]
