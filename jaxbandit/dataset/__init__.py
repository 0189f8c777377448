"""Results as labelled datasets, with the names, dimensions and labels of their variables.

``labels`` names variables, policies and environments; ``results`` builds the dataset and its
summary.
"""

__all__ = ["labels", "results"]
