"""Growth of regret: slopes with intervals, the exponent of a run's end, and the test of logarithmic growth.

Every result is a function of the mean curve, and its interval treats a whole game as one observation. The rounds of
one game stay together, whatever their correlation.
"""

import itertools
import math
import warnings

import numpy as np
import xarray as xr

from jaxbandit.analysis import statistics
from jaxbandit.analysis.statistics import NUM_RESAMPLES, Interval

TINY = 1e-100  # regret below this counts as this much
LAST_DOUBLINGS = 4  # the window of the exponent that figures, pages and tables show
WIDEST = 1.0  # width of an interval of an exponent beyond which the exponent is uncertain
APART = 3  # doublings between the two gains that the test of logarithmic growth compares
FLAT = (0.9, 1.1)  # ratios of those gains that count as no growth


def slope(
    regret: xr.DataArray,
    *,
    first: float = 1,
    last: float | None = None,
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
        pairs = curves.reshape(-1, *curves.shape[-2:])
        resamples = statistics.resamples(statistics.batched(curves).shape[-1], num_resamples, seed)
        fits = [_exponent(pair, weights, resamples, level) for pair in pairs]
        found = Interval(*(np.reshape(part, template.shape) for part in zip(*fits, strict=True)))
    text = f"bootstrap over seeds (studentised, {num_resamples} resamples), {100 * level:g} %"
    window = {"first": round(float(rounds[inside][0])), "last": round(float(rounds[inside][-1])), "kind": kind}
    return statistics.as_dataset(found, template, "slope", {"band": text, **window})


def _exponent(curves: np.ndarray, weights: np.ndarray, resamples: np.ndarray, level: float) -> Interval:
    """Fits the log-log slope of one pair's mean curve; curves [rounds, seeds]."""
    mean = curves.mean(axis=-1)
    if not (mean > 0).all():
        nothing = np.array(np.nan)
        return Interval(nothing, nothing, nothing, nothing)
    estimate = weights @ np.log(mean)
    stderr = float(statistics.mean_and_stderr((weights / mean) @ curves)[1])

    curves = statistics.batched(curves)
    means = resamples @ curves.T  # [resamples, rounds]
    positive = (means > 0).all(axis=1)
    means = np.maximum(means, TINY)  # a mean without a logarithm is treated as near 0, so its slope has a sign
    # A slope of logarithms is, to first order, the mean over seeds of sum_r weight_r value_r / mean_r.
    influence = (weights / means) @ curves
    variance = np.sum(resamples * influence**2, axis=1) - np.sum(resamples * influence, axis=1) ** 2
    errors = statistics.stderr_of(variance, curves.shape[-1])
    shift = np.log(means) @ weights - weights @ np.log(curves.mean(axis=-1))
    known = positive & (errors > 1e-12 * max(abs(estimate), 1e-300))
    t = statistics.in_errors(shift, errors, known, level, curves.shape[-1])
    upper, lower = np.quantile(t, [0.5 + level / 2, 0.5 - level / 2])
    return Interval(*map(np.asarray, (estimate, stderr, estimate - upper * stderr, estimate - lower * stderr)))


def exponent(
    regret: xr.DataArray, *, level: float = 0.95, num_resamples: int = NUM_RESAMPLES, seed: int = 0
) -> xr.Dataset:
    """Returns the exponent of T at the end of a run: the log-log slope over the last four doublings.

    Figures, the report and the measured table show this number and no other. ``model_error`` tells how far the
    curve is from a power: half the difference between the slopes over the first and the second half of the window.
    More digits than it allows have no meaning, see ``exponent_text``. If mean regret falls inside the window, as it may
    in an environment that changes, there is no exponent.

    Args:
      regret: An array with dimensions ``seed`` and ``round``.
      level: Coverage of the interval.
      num_resamples: Bootstrap samples.
      seed: Seed of the resampling.

    Returns:
      ``slope``, ``stderr``, ``low``, ``high`` and ``model_error``, NaN if mean regret ``falls``.
    """
    last = float(regret["round"][-1])
    first = last / 2**LAST_DOUBLINGS
    found = slope(regret, first=first, level=level, num_resamples=num_resamples, seed=seed)
    mean, log_t = regret.mean("seed"), np.log(regret["round"].values)
    with np.errstate(invalid="ignore", divide="ignore"):
        at = [last / 2.0**k for k in (LAST_DOUBLINGS, LAST_DOUBLINGS / 2, 0)]
        values = [mean.dot(_weights(log_t, np.log(t)), dim="round") for t in at]
        early, late = (np.log(after / before) for before, after in itertools.pairwise(values))
    half = LAST_DOUBLINGS / 2 * np.log(2)
    found = found.assign(model_error=abs(late - early) / half / 2)
    window = mean.isel(round=np.flatnonzero(regret["round"].values >= first))
    falls = (window.diff("round") < 0).any("round")
    return found.where(~falls).assign(falls=falls).assign_attrs(found.attrs)


def exponent_text(value: float, low: float, high: float, model_error: float) -> str:
    """Returns an exponent with its interval, to the digits that its errors allow; empty if there is none.

    An interval whose ends round to the exponent itself is left out. Exponents of regret lie between 0 and 1, so an
    interval wider than 1 is not printed either: the exponent is uncertain.

    Example:
      >>> exponent_text(0.6312, 0.6191, 0.6433, 0.004), exponent_text(0.6312, 0.6191, 0.6433, 0.08)
      ('T^0.63 (0.62 to 0.64)', 'T^0.6')
      >>> exponent_text(0.8, 0.2, 32.3, 0.4)
      'T^0.8, uncertain'
    """
    if math.isnan(value):
        return ""
    if not high - low <= WIDEST:
        return f"T^{value:.1f}, uncertain"
    digits = exponent_digits(low, high, model_error)
    shown, *limits = (f"{number:.{digits}f}" for number in (value, low, high))
    return f"T^{shown}" + ("" if limits == [shown, shown] else f" ({' to '.join(limits)})")


def exponent_digits(low: float, high: float, model_error: float) -> int:
    """Returns the digits of an exponent that its interval and its model error allow: 1 or 2."""
    return 1 if max((high - low) / 2, model_error) >= 0.05 else 2


def gain_ratio(regret: xr.DataArray, *, level: float = 0.95, entries: int = 1, cells: int | None = None) -> xr.Dataset:
    """Tests whether the gain per doubling of t has stopped rising, as it does if regret grows like log t.

    The gain of the last doubling is divided by that of the doubling three earlier. Growth like log t gives 1,
    log^2 t gives 1.18 at t = 2^20, and t^0.13 gives 1.31. With an interval of that ratio inside [0.9, 1.1] the growth
    is called ``"logarithmic"``. It is ``"faster"`` if the interval lies above 1.1, ``"transient"`` if it lies below
    0.9 (the gains still fall, as they do after an exploration phase), and ``"open"`` otherwise: more seeds would
    decide. The verdict speaks of the played rounds of this instance. It proves no bound.

    Args:
      regret: An array with dimensions ``seed`` and ``round``.
      level: Coverage of the interval; with ``entries``, of all intervals at once.
      entries: Number of entries of the table, each with such an interval (Bonferroni's correction).
      cells: The old name of ``entries``.

    Returns:
      ``ratio``, ``stderr`` (of its logarithm), ``low``, ``high``, ``verdict``. If a mean gain is not positive, the
      ratio is NaN and the verdict is ``"falling"``.

    Example:
      >>> rng, t = np.random.default_rng(0), 2.0 ** np.arange(11)
      >>> games = rng.exponential(size=(256, 11)).cumsum(axis=1)
      >>> found = gain_ratio(xr.DataArray(games, dims=("seed", "round"), coords={"round": t}))
      >>> str(found.verdict.values)
      'open'
    """
    if cells is not None:
        warnings.warn(
            "gain_ratio(cells=) is now called entries; the old name is still read in this release",
            FutureWarning,
            stacklevel=2,
        )
        entries = cells
    statistics.check_level(level)
    rounds = np.asarray(regret["round"].values, np.float64)
    if not enough_doublings(rounds):
        raise ValueError(
            f"gain_ratio() needs {APART + 1} doublings of t, but the record runs from {rounds[0]:g} to "
            f"{rounds[-1]:g}; record from an earlier round or play longer"
        )
    curves, template = statistics.seeds_last(regret)
    curves = np.moveaxis(curves, template.get_axis_num("round"), -1)  # [..., seeds, rounds]
    ends = np.log(rounds[-1]) - np.log(2) * np.array([APART + 1, APART, 1, 0])
    at = np.moveaxis(curves @ _interpolation(np.log(rounds), ends).T, -1, 0)
    earlier, later = at[1] - at[0], at[3] - at[2]
    means = earlier.mean(axis=-1), later.mean(axis=-1)
    positive = (means[0] > 0) & (means[1] > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_ratio = np.where(positive, np.log(means[1] / means[0]), np.nan)
        influence = later / means[1][..., None] - earlier / means[0][..., None]
    found = statistics.skewed_interval(np.where(positive[..., None], influence, np.nan), 1 - (1 - level) / entries)
    low, high = np.exp(log_ratio + found.low), np.exp(log_ratio + found.high)
    verdict = np.select(
        [~positive, (low >= FLAT[0]) & (high <= FLAT[1]), low > FLAT[1], high < FLAT[0]],
        ["falling", "logarithmic", "faster", "transient"],
        "open",
    )
    corrected = f", corrected for {entries} intervals" if entries > 1 else ""
    attrs = {"band": f"Hall's t over seeds, {100 * level:g} %{corrected}", "flat": FLAT}
    limits = Interval(np.exp(log_ratio), found.stderr, low, high)
    pair = template.isel(round=0, drop=True)
    return statistics.as_dataset(limits, pair, "ratio", attrs).assign(verdict=pair.astype(object).copy(data=verdict))


def onset(
    regret: xr.DataArray,
    *,
    margin: float = 0.1,
    level: float = 0.95,
    num_resamples: int = NUM_RESAMPLES,
    seed: int = 0,
) -> xr.Dataset:
    """Finds the round from which the gain per doubling of t has stopped rising, by the margin or more.

    This is weaker than logarithmic growth, which ``gain_ratio`` tests: log^2 t and small powers pass as well.

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
    pair = template.isel(round=0, drop=True)
    dims = (*pair.dims, "doubling")
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = mean[..., 1:] / mean[..., :-1]
    return xr.Dataset(
        {
            "onset": pair.copy(data=onset_round),
            "passed": pair.copy(data=since[..., -1]),
            "gain": (dims, mean[..., 1:]),
            "ratio": (dims, ratio),
            "stopped": (dims, stopped),
        },
        coords={**pair.coords, "doubling": ends[2:]},
        attrs={
            "band": f"bootstrap (studentised, {num_resamples} resamples), one-sided {100 * level:g} %",
            "margin": margin,
        },
    )


def enough_doublings(rounds: np.ndarray) -> bool:
    """Returns whether a record has the doublings that ``gain_ratio`` compares."""
    return rounds[-1] / rounds[0] >= 2 ** (APART + 1) * (1 - 1e-9)


def _weights(log_t: np.ndarray, at: float) -> xr.DataArray:
    """Returns the weights of the recorded rounds that interpolate a curve at one place."""
    return xr.DataArray(_interpolation(log_t, np.array([at]))[0], dims="round")


def _interpolation(x: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Returns the matrix that interpolates values given at ``x`` linearly: [at, x]."""
    return np.stack([np.interp(at, x, unit) for unit in np.eye(x.size)], axis=1)
