"""Base classes of environments: what a subclass lacks is named when it is made."""

import inspect

import jax.numpy as jnp
import pytest

from jaxbandit.environments import ENVIRONMENTS
from jaxbandit.environments.laws.base import Law, Located, Symmetric
from jaxbandit.environments.schedules.base import Moved, Schedule
from jaxbandit.types import field, pytree


@pytree
class Silent(Located):
    """A law that cannot draw."""

    arm_means: jnp.ndarray = field(alias="means", vector=True)

    def raw_moment(self, alpha):
        return jnp.ones(2)


@pytree
class Still(Moved):
    """A schedule that does not say its means."""

    law: object = field(nested=True)


@pytest.mark.parametrize(
    ("make", "lacking"), [(lambda: Silent(means=[0.1, 0.2]), "loss"), (lambda: Still(law=None), "means")]
)
def test_a_subclass_without_a_method_is_refused_by_name(make, lacking):
    with pytest.raises(TypeError, match=rf"abstract class \w+ .*abstract method '?{lacking}'?"):
        make()


def test_shipped_environments_are_whole_and_their_bases_are_not():
    assert not [name for name, cls in ENVIRONMENTS.items() if inspect.isabstract(cls)]
    assert all(inspect.isabstract(base) for base in (Law, Located, Symmetric, Schedule, Moved))
