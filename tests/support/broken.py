"""A module that fails when it is imported."""

raise ZeroDivisionError("broken")
