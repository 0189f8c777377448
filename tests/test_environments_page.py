"""docs/environments.md: its table is that of the registry, its example runs."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import jaxbandit as jb
from benchmarks import environments
from jaxbandit.types import public_fields

PAGE = environments.PAGE.read_text(encoding="utf-8")


def test_the_table_is_up_to_date():
    assert environments.replaced(PAGE, "table", environments.table()) == PAGE, "run python -m benchmarks.environments"
    for name, cls in jb.ENVIRONMENTS.items():
        assert f"`{name}`" in PAGE
        assert all(f"`{field}" in PAGE for field in public_fields(cls))


@pytest.mark.parametrize("name", environments.examples([0.2, 0.5]))
def test_every_environment_has_a_small_picture(name):
    assert name in jb.ENVIRONMENTS
    drawn = (environments.IMAGES / f"{name}.svg").read_text(encoding="utf-8")
    assert drawn.startswith("<svg")
    assert "nan" not in drawn
    assert len(drawn) < 12_000


def test_a_picture_is_of_its_environment():
    page = environments.picture(jb.Swap(jb.Pareto(means=[0.2, 0.5, 1.0], tail_index=1.6), horizon=environments.ROUNDS))
    assert page == (environments.IMAGES / "swap.svg").read_text(encoding="utf-8")


@pytest.mark.slow
def test_an_environment_of_your_own_takes_twenty_lines(capsys):
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    environment = block[block.index("@pytree") : block.index("environments =")]
    assert len(environment.splitlines()) <= 20
    names = {}
    exec(compile(block, "docs/environments.md", "exec"), names)
    assert capsys.readouterr().out == "('tail_index', 'seed', 'round')\n"
    made = names["LogLogistic"](means=[0.5, 1.0], tail_index=1.6)
    assert made.moment(1.0) == pytest.approx(1.0)
    assert made.moment_order == pytest.approx(1.54)
    with pytest.raises(ValueError, match=r"no moment of order 1.6"):
        made.moment(1.6)
    drawn = [float(made.loss(jnp.int32(1), jnp.int32(0), key)) for key in jax.random.split(jax.random.key(0), 200)]
    reference = scipy.stats.fisk(1.6, scale=0.5 * np.sinc(1 / 1.6))
    assert scipy.stats.kstest(drawn, reference.cdf).pvalue > 1e-6
