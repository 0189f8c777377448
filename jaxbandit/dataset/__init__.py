"""Results as labelled datasets: the names, dimensions and labels of what a run returns.

``labels`` names variables, policies and environments; ``results`` builds the dataset, its summary and paired
comparisons.
"""
