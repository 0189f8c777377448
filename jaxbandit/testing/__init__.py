"""Checks of policies and environments, for their authors: one call, or one test for each check.

``check`` runs them all and returns a report. ``POLICY_CHECKS`` and ``ENVIRONMENT_CHECKS`` name the single checks, for a
test suite: each takes a policy or an environment, returns a sentence, and raises ``CheckError`` if it does not hold.
"""

from jaxbandit.testing.check import Checked as Checked
from jaxbandit.testing.check import check as check
from jaxbandit.testing.environments import ENVIRONMENT_CHECKS as ENVIRONMENT_CHECKS
from jaxbandit.testing.games import CheckError as CheckError
from jaxbandit.testing.policies import POLICY_CHECKS as POLICY_CHECKS
