"""jaxbandit: a simulator of heavy-tailed bandits in which a whole study is one compiled call."""

from jaxbandit import xla as _xla

_xla.configure()

from jaxbandit.engine import play as play  # noqa: E402
from jaxbandit.environments import ENVIRONMENTS as ENVIRONMENTS  # noqa: E402
from jaxbandit.game import game_key as game_key  # noqa: E402
from jaxbandit.game import start as start  # noqa: E402
from jaxbandit.game import step as step  # noqa: E402
from jaxbandit.grid import grid as grid  # noqa: E402
from jaxbandit.policies import POLICIES as POLICIES  # noqa: E402
from jaxbandit.results import compare as compare  # noqa: E402
from jaxbandit.results import product as product  # noqa: E402
from jaxbandit.results import summary as summary  # noqa: E402
from jaxbandit.runner import Engine as Engine  # noqa: E402
from jaxbandit.simulate import simulate as simulate  # noqa: E402
from jaxbandit.version import __version__ as __version__  # noqa: E402

globals().update({cls.__name__: cls for cls in (*POLICIES.values(), *ENVIRONMENTS.values())})
