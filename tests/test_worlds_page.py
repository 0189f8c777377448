"""docs/worlds.md: its table is that of the registry, its example runs."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import jaxbandit as jb
from benchmarks import worlds
from jaxbandit.types import public_fields

PAGE = worlds.PAGE.read_text(encoding="utf-8")


def test_the_table_is_up_to_date():
    assert worlds.replaced(PAGE, "table", worlds.table()) == PAGE, "run python -m benchmarks.worlds"
    for name, cls in jb.ENVIRONMENTS.items():
        assert f"`{name}`" in PAGE
        assert all(f"`{field}" in PAGE for field in public_fields(cls))


@pytest.mark.parametrize("name", worlds.examples([0.2, 0.5]))
def test_every_world_has_a_small_picture(name):
    assert name in jb.ENVIRONMENTS
    drawn = (worlds.IMAGES / f"{name}.svg").read_text(encoding="utf-8")
    assert drawn.startswith("<svg")
    assert "nan" not in drawn
    assert len(drawn) < 12_000


def test_a_picture_is_of_its_world():
    page = worlds.picture(jb.Swap(jb.Pareto(means=[0.2, 0.5, 1.0], tail_index=1.6), horizon=worlds.ROUNDS))
    assert page == (worlds.IMAGES / "swap.svg").read_text(encoding="utf-8")


def test_a_world_of_your_own_takes_twenty_lines(capsys):
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    world = block[block.index("@pytree") : block.index("worlds =")]
    assert len(world.splitlines()) <= 20
    names = {}
    exec(compile(block, "docs/worlds.md", "exec"), names)
    assert capsys.readouterr().out == "('tail_index', 'seed', 'round')\n"
    made = names["LogLogistic"](means=[0.5, 1.0], tail_index=1.6)
    assert made.moment(1.0) == pytest.approx(1.0)
    assert made.moment_order == pytest.approx(1.54)
    with pytest.raises(ValueError, match=r"no moment of order 1.6"):
        made.moment(1.6)
    drawn = [float(made.loss(jnp.int32(1), jnp.int32(0), key)) for key in jax.random.split(jax.random.key(0), 200)]
    reference = scipy.stats.fisk(1.6, scale=0.5 * np.sinc(1 / 1.6))
    assert scipy.stats.kstest(drawn, reference.cdf).pvalue > 1e-6
