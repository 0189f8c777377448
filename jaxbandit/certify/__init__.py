"""Certificates of uniINF: games in float64, held against what its analysis proves, round by round.

``facts`` lists what is proved about every trajectory, and ``certificates`` plays games and checks the facts.
"""

from jaxbandit.certify.certificates import HORIZON as HORIZON
from jaxbandit.certify.certificates import NUM_SEEDS as NUM_SEEDS
from jaxbandit.certify.certificates import QUICK_HORIZON as QUICK_HORIZON
from jaxbandit.certify.certificates import QUICK_SEEDS as QUICK_SEEDS
from jaxbandit.certify.certificates import Certified as Certified
from jaxbandit.certify.certificates import broken as broken
from jaxbandit.certify.certificates import certify as certify
from jaxbandit.certify.certificates import default_worlds as default_worlds
from jaxbandit.certify.certificates import holds as holds
from jaxbandit.certify.certificates import read_worlds as read_worlds
from jaxbandit.certify.certificates import run_controls as run_controls
from jaxbandit.certify.certificates import tables as tables
from jaxbandit.certify.certificates import tolerance as tolerance
