"""Ranking of policies by paired tests on common random numbers, corrected for the number of tests."""

import math

import numpy as np
import xarray as xr

from jaxbandit.analysis import statistics
from jaxbandit.analysis.statistics import two_sided


def ranking(ds: xr.Dataset, *, at: int | None = None, level: float = 0.95, variable: str = "regret") -> xr.Dataset:
    """Ranks policies by mean regret in each environment, and tests every two policies against each other.

    Policies share common random numbers, so two of them are compared by their difference seed by seed.
    The test of a zero mean is Hall's: the t statistic, transformed to take out its skewness, against
    Student's law. The p-values of all comparisons in an environment are corrected by Holm's method, so that with
    the stated confidence *no* two equal policies are declared different.

    Args:
      ds: A dataset of ``simulate`` with dimensions ``policy``, ``seed``, ``round`` and perhaps ``environment``.
      at: The recorded round to compare at; default the last.
      level: Confidence, over all comparisons in an environment.
      variable: The variable to rank by; less is better.

    Returns:
      A dataset. It has by ``policy`` the ``mean``, ``rank`` (1 is least) and ``beaten_by`` (how many policies are
      significantly better; 0 marks those that may be best), and by ``policy`` and ``rival`` the ``difference`` of
      means, ``p`` and ``p_holm``.

    References:
      Hall. "On the removal of skewness by transformation". JRSS B, 1992. Holm. "A simple sequentially rejective
      multiple test procedure". Scandinavian Journal of Statistics, 1979.

    Example:
      >>> import jaxbandit as jb
      >>> environment = jb.Bernoulli(means=[0.1, 0.9])
      >>> ds = jb.simulate([jb.Uniform(), jb.UCB1()], [environment], horizon=200, num_seeds=64)
      >>> found = ranking(ds).isel(environment=0)
      >>> found["rank"].values.tolist(), found.beaten_by.values.tolist()
      ([2, 1], [1, 0])
    """
    statistics.check_level(level)
    if variable not in ds or "seed" not in ds[variable].dims or "policy" not in ds[variable].dims:
        raise ValueError(
            f"ranking() needs {variable!r} with dimensions `policy` and `seed`; simulate a list of policies "
            'with keep="seeds"'
        )
    values = ds[variable]
    if "round" in values.dims:
        if at is not None and at not in values["round"].values:
            raise ValueError(f"round {at} was not recorded; the last is {int(values['round'][-1])}")
        values = values.sel(round=at) if at is not None else values.isel(round=-1)
    if values.sizes["policy"] < 2:
        raise ValueError(f"ranking() needs at least 2 policies, got {values.sizes['policy']}; simulate a list of them")
    table, template = statistics.seeds_last(values)
    axis = template.get_axis_num("policy")
    table = np.moveaxis(table, axis, -2)  # [..., policies, seeds]
    mean = table.mean(axis=-1)
    difference = mean[..., :, None] - mean[..., None, :]
    pairs = np.triu_indices(table.shape[-2], 1)
    tested = [skewness_corrected_p(table[..., i, :] - table[..., j, :]) for i, j in zip(*pairs, strict=True)]
    p, corrected = np.ones_like(difference), np.ones_like(difference)
    for out, values_of_pairs in ((p, np.stack(tested, axis=-1)), (corrected, holm(np.stack(tested, axis=-1)))):
        out[..., *pairs] = out[..., *pairs[::-1]] = values_of_pairs

    better = (corrected < 1 - level) & (difference > 0)
    rank = 1 + (mean[..., None, :] < mean[..., :, None]).sum(axis=-1)
    others = tuple(str(dim) for dim in template.dims if dim != "policy")
    of_policy, of_pair = (*others, "policy"), (*others, "policy", "rival")
    return xr.Dataset(
        {
            "mean": (of_policy, mean),
            "rank": (of_policy, rank),
            "beaten_by": (of_policy, better.sum(axis=-1)),
            "difference": (of_pair, difference),
            "p": (of_pair, p),
            "p_holm": (of_pair, corrected),
        },
        coords={**template.coords, "rival": template["policy"].values},
        attrs={"test": f"paired over {table.shape[-1]} seeds (Hall's t), Holm over all pairs, {100 * level:g} %"},
    )


def skewness_corrected_p(samples: np.ndarray) -> np.ndarray:
    """Returns two-sided p-values of a zero mean along the last axis; 1 if all samples are 0.

    With t the statistic and g the skewness over sqrt(n), ``t + g t^2 / 3 + g^2 t^3 / 27 + g / 6`` is
    normal to second order, and increasing in t. For few normal samples, whose g is small, it has Student's law with
    n - 1 degrees of freedom, so it is compared with that law. One sample gives NaN.
    """
    count = samples.shape[-1]
    mean, stderr = statistics.mean_and_stderr(samples)
    centred = samples - mean[..., None]
    spread = samples.std(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = mean / stderr
        g = (centred**3).mean(axis=-1) / spread**3 / math.sqrt(count)
        z = np.where(spread > 0, t + g * t**2 / 3 + g**2 * t**3 / 27 + g / 6, np.where(mean == 0, 0, np.inf))
    return two_sided(z, count - 1)


def holm(p: np.ndarray) -> np.ndarray:
    """Returns Holm's adjusted p-values along the last axis, to be compared with 1 - confidence.

    Example:
      >>> holm(np.array([0.01, 0.04, 0.03])).round(2).tolist()
      [0.03, 0.06, 0.06]
    """
    count = p.shape[-1]
    order = np.argsort(p, axis=-1)
    steps = np.take_along_axis(p, order, axis=-1) * (count - np.arange(count))
    adjusted = np.minimum(np.maximum.accumulate(steps, axis=-1), 1)
    out = np.empty_like(p)
    np.put_along_axis(out, order, adjusted, axis=-1)
    return out
