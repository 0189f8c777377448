"""Local sensitivity: the response of expected regret to a small change of one parameter, by coupled differences."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from jaxbandit.checks import check_whole
from jaxbandit.engine import Engine
from jaxbandit.parameters import having, move, place, values_of
from jaxbandit.sensitivity.kept import Kept, play_points
from jaxbandit.sensitivity.points import pairs_of

STEP = 0.1
CHECK_SHARE = 16  # one seed in 16 also plays at half the step
CHECK_LEAST = 16  # fewer seeds than this cannot show a bias
# If the bias of the step exceeds this many standard errors, it is removed. A removal by mistake would cost much more
# than its stated error, and with 16 seeds chance exceeds 4 standard errors in one of a thousand cases.
SIGNIFICANT = 4.0
ROUNDING = 1e-12  # a bias below this share of the estimate is due to rounding

LONG_NAMES = {
    "value": "value of the parameter, theta",
    "regret": "mean regret, the average of both sides",
    "gradient": "d E[R_T] / d theta",
    "gradient_stderr": "standard error of the gradient",
    "elasticity": "d log E[R_T] / d log theta",
    "elasticity_stderr": "standard error of the elasticity",
    "bias": "what the step adds to the gradient, estimated from half the step",
    "bias_stderr": "standard error of that",
    "extrapolated": "whether the bias was significant and removed from the gradient",
    "elasticity_bias": "what the step adds to the elasticity",
    "elasticity_bias_stderr": "standard error of that",
    "elasticity_extrapolated": "whether it was removed from the elasticity",
    "variance_reduction": "variance of the difference between independent games over that between coupled ones",
    "failed": "games whose state was not finite at some round",
}


def local(
    policy: Any,
    environment: Any,
    parameters: Sequence[str],
    *,
    horizon: int,
    num_seeds: int,
    seed: int = 0,
    step: float | Mapping[str, float] = STEP,
    check_seeds: int | None = None,
    dtype: str = "float32",
    engine: Engine | None = None,
    kept: Kept | None = None,
) -> xr.Dataset:
    r"""Estimates the derivative of expected regret in parameters of a policy or its environment, one at a time.

    For each seed the games at :math:`\theta e^h` and :math:`\theta e^{-h}` read the same random bits and lie side by
    side on the lane axis. Half their difference over :math:`h` estimates :math:`dE[R_T] / d\log\theta`; the same of the
    logarithms of their means is the elasticity. The bias of the step, of order :math:`h^2`, is measured by a second
    step :math:`h/2` on a share of the seeds. If it exceeds 4 standard errors, it is removed by Richardson's
    extrapolation. The method works for every policy, since nothing is differentiated.

    Args:
      policy: A policy, a ``grid``, or a list of those, as in ``simulate``.
      environment: An environment, a ``grid``, or a list; None if ``policy`` is a ``Study``, which has
        environments of its own and gives its policies what they need of them.
      parameters: Names, as in ``jaxbandit.parameters``; in a list of classes, a class without the name gets NaN.
      horizon: Rounds to play.
      num_seeds: The number of coupled games for each parameter.
      seed: The study seed.
      step: :math:`h`, for all parameters or by name.
      check_seeds: Seeds that also play at ``h / 2``; default one in 16, at least 16. 0 for none, ``num_seeds`` for all,
        at twice the cost.
      dtype: ``"float32"`` or ``"float64"``.
      engine: The settings of the engine; they do not change the numbers.
      kept: The finished points of an earlier call, which ``run`` finds in a directory.

    Returns:
      ``gradient`` (d E[R] / d theta) and ``elasticity`` with standard errors, the ``bias`` of the step, whether it was
      ``extrapolated`` away, and the ``variance_reduction`` over independent seeds, with a dimension ``parameter``
      behind those of the sweep. A step of a parameter of the environment does not change what the policy was given.

    Example:
      >>> import jaxbandit as jb
      >>> from jaxbandit import sensitivity
      >>> environment = jb.Bernoulli(means=[0.2, 0.5])
      >>> ds = sensitivity.local(jb.Uniform(), environment, ["gap"], horizon=100, num_seeds=64)
      >>> round(ds.elasticity.item(), 6)  # uniform play loses in proportion to the gap
      1.0
    """
    pairs = pairs_of(policy, environment)
    check_whole("num_seeds", num_seeds, 2, "a standard error needs two")
    if check_seeds is None:
        check_seeds = min(num_seeds, max(CHECK_LEAST, num_seeds // CHECK_SHARE))
    check_whole("check_seeds", check_seeds, 0)
    if check_seeds > num_seeds:
        raise ValueError(f"check_seeds must be at most num_seeds = {num_seeds}, got {check_seeds}; leave it out")
    names = list(parameters)
    steps = checked_steps(names, step)
    moved = having(pairs.pairs, names)  # [(pair, parameter number)]
    points, counts = [], []
    for n, number in moved:
        h = steps[number]
        for factor, count in ((1.0, num_seeds), (0.5, check_seeds)):
            if count:
                points += [stepped(*pairs.pairs[n], names[number], sign * h * factor) for sign in (1, -1)]
                counts += [count, count]
    games = play_points(points, counts, horizon=horizon, seed=seed, dtype=dtype, engine=engine, kept=kept)
    final, failed = games.regret[..., -1], (games.failed > 0).sum(axis=1)

    kinds = {"extrapolated": bool, "elasticity_extrapolated": bool, "failed": np.int64}
    shape = (len(pairs.pairs), len(names))
    variables = {name: np.full(shape, np.nan if name not in kinds else 0, kinds.get(name)) for name in LONG_NAMES}
    width = 4 if check_seeds else 2
    for row, (n, number) in enumerate(moved):
        mine = slice(width * row, width * (row + 1))
        up, down, *half = final[mine]
        value = values_of(*pairs.pairs[n], [names[number]])[names[number]]
        found = _estimates(up, down, [one[:check_seeds] for one in half], steps[number], value)
        for name, estimate in (found | {"failed": failed[mine].sum()}).items():
            variables[name][n, number] = estimate
    ds = pairs.dataset(variables, {"parameter": names}, LONG_NAMES)
    ds = ds.assign_coords(step=("parameter", [steps[number] for number in range(len(names))]))
    return ds.assign_attrs(
        kind="local sensitivity", horizon=horizon, num_seeds=num_seeds, check_seeds=check_seeds, seed=seed, dtype=dtype
    )


def stepped(policy: Any, environment: Any, name: str, log_step: float) -> tuple[Any, Any]:
    """Returns a policy and its environment with one parameter multiplied by ``e^log_step``."""
    value = values_of(policy, environment, [name])[name]
    place(policy, environment, name)
    target = value * math.exp(log_step)
    try:
        return move(policy, environment, {name: target})
    except ValueError as error:
        raise ValueError(
            f"a step of {abs(log_step):g} takes {name} from {value:g} to {target:g}, but {error}; "
            "choose a smaller step, or another value"
        ) from None


def checked_steps(names: Sequence[str], step: float | Mapping[str, float]) -> list[float]:
    """Returns a checked step for every parameter."""
    if not names:
        raise ValueError("parameters is empty; name at least one, e.g. 'initial_scale'")
    if isinstance(step, Mapping):
        for name in step:
            if name not in names:
                raise ValueError(f"step names {name!r}, which is not among the parameters: {', '.join(names)}")
    steps = [step.get(name, STEP) if isinstance(step, Mapping) else step for name in names]
    for name, one in zip(names, steps, strict=True):
        if not (isinstance(one, int | float) and 0 < one < math.inf):
            raise ValueError(f"the step of {name} must be a number above 0, got {one!r}; {STEP:g} is usual")
    return [float(one) for one in steps]


class _Slope(NamedTuple):
    """A central difference with the contribution of each seed; the mean of ``terms`` is 0."""

    value: float
    terms: np.ndarray  # [seeds]


def _estimates(up: np.ndarray, down: np.ndarray, half: Sequence[np.ndarray], h: float, value: float) -> dict[str, Any]:
    """Returns all estimates of one parameter at one point."""
    found: dict[str, Any] = {"value": value, "regret": (up.mean() + down.mean()) / 2}
    for prefix, slope, unit in (("", _difference, value), ("elasticity_", _log_difference, 1.0)):
        whole = slope(up, down, h)
        estimate, stderr = whole.value, _stderr(whole.terms)
        bias = bias_stderr = math.nan
        extrapolated = False
        if half:
            count = half[0].size
            coarse, fine = slope(up[:count], down[:count], h), slope(half[0], half[1], h / 2)
            # D(h) = D + c h^2: the two steps differ by 3/4 of the first one's bias.
            bias, terms = 4 / 3 * (coarse.value - fine.value), 4 / 3 * (coarse.terms - fine.terms)
            bias_stderr = _stderr(terms)
            extrapolated = bool(abs(bias) > max(SIGNIFICANT * bias_stderr, ROUNDING * abs(estimate)))
            if extrapolated:
                estimate, stderr = estimate - bias, _corrected_stderr(whole.terms, terms)
        name = prefix.removesuffix("_") or "gradient"
        found |= {name: estimate / unit, f"{name}_stderr": stderr / unit, f"{prefix}extrapolated": extrapolated}
        found |= {f"{prefix}bias": bias / unit, f"{prefix}bias_stderr": bias_stderr / unit}
    independent, coupled = np.var(up, ddof=1) + np.var(down, ddof=1), np.var(up - down, ddof=1)
    found["variance_reduction"] = independent / coupled if coupled else (math.inf if independent else math.nan)
    return found


def _difference(up: np.ndarray, down: np.ndarray, h: float) -> _Slope:
    """Returns the difference in units of regret per log theta."""
    slopes = (up - down) / (2 * h)
    return _Slope(slopes.mean(), slopes - slopes.mean())


def _log_difference(up: np.ndarray, down: np.ndarray, h: float) -> _Slope:
    """Returns the difference of the logarithm of mean regret, with terms by the delta method."""
    high, low = up.mean(), down.mean()
    if not (high > 0 and low > 0):
        return _Slope(math.nan, np.full(up.size, math.nan))
    return _Slope(math.log(high / low) / (2 * h), (up / high - down / low) / (2 * h))


def _stderr(terms: np.ndarray) -> float:
    return float(np.std(terms, ddof=1) / math.sqrt(terms.size)) if terms.size > 1 else math.nan


def _corrected_stderr(whole: np.ndarray, bias: np.ndarray) -> float:
    """Returns the standard error of a mean over all seeds minus a mean over the first few of them."""
    both, rest = whole[: bias.size] / whole.size - bias / bias.size, whole[bias.size :] / whole.size
    return math.sqrt(both.size * np.var(both, ddof=1) + (rest.size * np.var(rest, ddof=1) if rest.size > 1 else 0.0))
