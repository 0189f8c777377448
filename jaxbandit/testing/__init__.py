"""Checks of policies and environments, for their authors: one call, or one test for each check.

``check`` runs them all and returns a report. ``POLICY_CHECKS`` and ``ENVIRONMENT_CHECKS`` name the single checks, for a
test suite: each takes a policy or an environment, returns a sentence, and raises ``CheckError`` if it does not hold.
"""

from jaxbandit.testing.check import Checked, check
from jaxbandit.testing.environments import ENVIRONMENT_CHECKS
from jaxbandit.testing.games import CheckError
from jaxbandit.testing.policies import POLICY_CHECKS

__all__ = ["ENVIRONMENT_CHECKS", "POLICY_CHECKS", "CheckError", "Checked", "check"]
