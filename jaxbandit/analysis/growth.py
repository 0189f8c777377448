"""Growth of regret: slopes with intervals, and the onset of the logarithmic regime.

Every result is a function of the mean curve, so its interval comes from resampling whole games. The rounds of one
game stay together, whatever their correlation.
"""

import numpy as np
import xarray as xr

from jaxbandit.analysis import statistics
from jaxbandit.analysis.statistics import NUM_RESAMPLES, Interval

TINY = 1e-100  # regret below this counts as this much


def slope(
    regret: xr.DataArray,
    *,
    first: int = 1,
    last: int | None = None,
    kind: str = "log-log",
    level: float = 0.95,
    num_resamples: int = NUM_RESAMPLES,
    seed: int = 0,
) -> xr.Dataset:
    """Fits the growth of mean regret over a window of rounds, by least squares on the recorded rounds.

    ``"log-log"`` fits log(mean regret) against log(t): the exponent, 1/alpha in the adversarial theory.
    ``"log"`` fits mean regret against log(t): regret per unit of log T, the constant of the logarithmic
    regime. The interval is a studentised bootstrap over seeds.

    Args:
      regret: An array with dimensions ``seed`` and ``round``.
      first: The window's first round.
      last: The window's last round; default the end of the run.
      kind: ``"log-log"`` or ``"log"``.
      level: Coverage.
      num_resamples: Bootstrap samples.
      seed: Seed of the resampling.

    Returns:
      ``slope``, ``stderr``, ``low``, ``high``; NaN if the mean is not positive, for then it has no logarithm.

    Example:
      >>> rng, t = np.random.default_rng(0), np.geomspace(1, 1024, 11)
      >>> games = rng.exponential(size=(256, 1)) * np.sqrt(t)
      >>> found = slope(xr.DataArray(games, dims=("seed", "round"), coords={"round": t}))
      >>> round(float(found.slope), 3)
      0.5
    """
    statistics.check_level(level)
    if kind not in ("log-log", "log"):
        raise ValueError(f"kind must be 'log-log' or 'log', got {kind!r}")
    rounds = regret["round"].values
    inside = (rounds >= first) & (rounds <= (rounds[-1] if last is None else last))
    if inside.sum() < 2:
        raise ValueError(
            f"a slope needs 2 recorded rounds between first={first} and last={last}, got {int(inside.sum())}; "
            "widen the window or record more rounds"
        )
    log_t = np.log(rounds[inside])
    weights = (log_t - log_t.mean()) / np.sum((log_t - log_t.mean()) ** 2)
    curves, template = statistics.seeds_last(regret.isel(round=np.flatnonzero(inside)))
    template = template.isel(round=0, drop=True)
    curves = np.moveaxis(curves, regret.isel(seed=0, drop=True).get_axis_num("round"), -2)  # [..., rounds, seeds]
    if kind == "log":
        found = statistics.bootstrap_interval(np.einsum("r,...rn->...n", weights, curves), level, num_resamples, seed)
    else:
        cells = curves.reshape(-1, *curves.shape[-2:])
        resamples = statistics.resamples(curves.shape[-1], num_resamples, seed)
        fits = [_exponent(cell, weights, resamples, level) for cell in cells]
        found = Interval(*(np.reshape(part, template.shape) for part in zip(*fits, strict=True)))
    text = f"bootstrap over seeds (studentised, {num_resamples} resamples), {100 * level:g}%"
    window = {"first": round(float(rounds[inside][0])), "last": round(float(rounds[inside][-1])), "kind": kind}
    return statistics.as_dataset(found, template, "slope", {"band": text, **window})


def _exponent(curves: np.ndarray, weights: np.ndarray, resamples: np.ndarray, level: float) -> Interval:
    """Fits the log-log slope of one pair's mean curve; curves [rounds, seeds]."""
    count = curves.shape[-1]
    mean = curves.mean(axis=-1)
    if not (mean > 0).all():
        nothing = np.array(np.nan)
        return Interval(nothing, nothing, nothing, nothing)
    estimate = weights @ np.log(mean)
    stderr = float(statistics.mean_and_stderr((weights / mean) @ curves)[1])

    means = resamples @ curves.T  # [resamples, rounds]
    positive = (means > 0).all(axis=1)
    means = np.maximum(means, TINY)  # a mean without a logarithm is treated as near 0, so its slope has a sign
    # A slope of logarithms is, to first order, the mean over seeds of sum_r weight_r value_r / mean_r.
    influence = (weights / means) @ curves
    variance = np.sum(resamples * influence**2, axis=1) - np.sum(resamples * influence, axis=1) ** 2
    errors = statistics.stderr_of(variance, count)
    shift = np.log(means) @ weights - estimate
    known = positive & (errors > 1e-12 * max(abs(estimate), 1e-300))
    t = statistics.in_errors(shift, errors, known, level, count)
    upper, lower = np.quantile(t, [0.5 + level / 2, 0.5 - level / 2])
    return Interval(*map(np.asarray, (estimate, stderr, estimate - upper * stderr, estimate - lower * stderr)))


def onset(
    regret: xr.DataArray,
    *,
    margin: float = 0.1,
    level: float = 0.95,
    num_resamples: int = NUM_RESAMPLES,
    seed: int = 0,
) -> xr.Dataset:
    """Finds the onset of the logarithmic regime: the round from which the gain per doubling of t no longer grows.

    The rounds T, T/2, T/4, ... cut the run into doublings (regret between recorded rounds is interpolated in
    log t). Growth like log t gains the same in each doubling, and growth like T^(1/alpha) gains
    2^(1/alpha) >= 1.41 times as much as in the doubling before. A doubling *has stopped growing* if its mean gain is
    surely below ``1 + margin`` times the one before, that is, if the upper confidence limit of the difference is at
    most 0. The onset is the start of the first doubling from which all have stopped. So a run that still
    grows by ``1 + margin`` or more is called past its onset with a probability of at most about ``1 - level``.

    Args:
      regret: An array with dimensions ``seed`` and ``round``.
      margin: Growth per doubling that counts as none.
      level: One-sided confidence of each comparison.
      num_resamples: Bootstrap samples (studentised, over seeds).
      seed: Seed of the resampling.

    Returns:
      ``onset``, the round (NaN if the run does not reach it), ``passed``, and by ``doubling`` (its last
      round) ``gain``, its ``ratio`` to the gain before, and ``stopped``.
    """
    statistics.check_level(level)
    if margin <= 0:
        raise ValueError(f"margin must be > 0, got {margin}; give the growth that counts as none, e.g. 0.1")
    rounds = np.asarray(regret["round"].values, np.float64)
    ends = rounds[-1] / 2.0 ** np.arange(int(np.log2(rounds[-1] / rounds[0]) + 1e-9), -1, -1)
    if ends.size < 3:
        raise ValueError(
            f"onset() compares two doublings of t, but the record runs from {rounds[0]:g} to {rounds[-1]:g}; "
            "record from an earlier round or play longer"
        )
    curves, template = statistics.seeds_last(regret)
    axis = template.get_axis_num("round")
    at_ends = np.moveaxis(curves, axis, -1) @ _interpolation(np.log(rounds), np.log(ends)).T  # [..., seeds, ends]
    gains = np.diff(at_ends, axis=-1)
    excess = np.moveaxis(gains[..., 1:] - (1 + margin) * gains[..., :-1], -1, -2)  # [..., doublings, seeds]
    high = statistics.bootstrap_interval(excess, 2 * level - 1, num_resamples, seed).high
    stopped = high <= 0
    since = np.logical_and.accumulate(stopped[..., ::-1], axis=-1)[..., ::-1]
    starts = ends[1:-1]
    onset_round = np.where(since.any(axis=-1), starts[np.argmax(since, axis=-1)], np.nan)

    mean = gains.mean(axis=-2)
    cell = template.isel(round=0, drop=True)
    dims = (*cell.dims, "doubling")
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = mean[..., 1:] / mean[..., :-1]
    return xr.Dataset(
        {
            "onset": cell.copy(data=onset_round),
            "passed": cell.copy(data=since[..., -1]),
            "gain": (dims, mean[..., 1:]),
            "ratio": (dims, ratio),
            "stopped": (dims, stopped),
        },
        coords={**cell.coords, "doubling": ends[2:]},
        attrs={
            "band": f"bootstrap (studentised, {num_resamples} resamples), one-sided {100 * level:g}%",
            "margin": margin,
        },
    )


def _interpolation(x: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Returns the matrix that interpolates values given at ``x`` linearly: [at, x]."""
    return np.stack([np.interp(at, x, unit) for unit in np.eye(x.size)], axis=1)
