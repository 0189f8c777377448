"""Non-stationary environments: a law whose means change on a schedule fixed before play."""

from jaxbandit.environments.schedules.base import Schedule as Schedule
from jaxbandit.environments.schedules.corrupted import Corrupted as Corrupted
from jaxbandit.environments.schedules.drifting import Drifting as Drifting
from jaxbandit.environments.schedules.minimax import MinimaxHard as MinimaxHard
from jaxbandit.environments.schedules.scheduled import Scheduled as Scheduled
from jaxbandit.environments.schedules.shifting import Shifting as Shifting
from jaxbandit.environments.schedules.switching import Swap as Swap
from jaxbandit.environments.schedules.switching import Switching as Switching
