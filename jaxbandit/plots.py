"""Figures for print: matplotlib, one style."""

import pathlib

import matplotlib
import numpy as np
import xarray as xr

from jaxbandit.inspection import Inspection, hill_path
from jaxbandit.results import summary

# Okabe-Ito: distinct for colour-blind readers and in grey.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")


def regret_curves(ds: xr.Dataset, path: str | pathlib.Path, title: str = "") -> pathlib.Path:
    """Mean regret over rounds with its 95 % band, one panel per environment.

    Args:
      ds: A dataset with dimensions ``policy`` and ``environment``.
      path: Where to write; the ending chooses the format.
      title: Heads the figure.
    """
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    stats = summary(ds)
    worlds, policies = stats.environment.values, stats.policy.values
    with plt.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure, axes = plt.subplots(
            1, len(worlds), figsize=(4.2 * len(worlds), 3.4), squeeze=False, layout="constrained"
        )
        for panel, world in zip(axes[0], worlds, strict=True):
            for n, policy in enumerate(policies):
                at = stats.sel(policy=policy, environment=world)
                colour = COLOURS[n % len(COLOURS)]
                panel.plot(at["round"], at.regret_mean, color=colour, label=str(policy), linewidth=1.6)
                panel.fill_between(at["round"], at.regret_low, at.regret_high, color=colour, alpha=0.25, linewidth=0)
            panel.set(xscale="log", title=str(world), xlabel="round")
            _scale_regret(panel, stats.regret_low.sel(environment=world).values)
            panel.grid(True, which="major", linewidth=0.4, alpha=0.5)
        axes[0][0].set_ylabel("mean pseudo-regret")
        axes[0][0].legend(frameon=False)
        figure.suptitle(title)
        figure.supxlabel(f"bands: normal 95 %, {ds.attrs.get('num_seeds', '?')} seeds", fontsize=7)
        figure.savefig(path, dpi=160)
        plt.close(figure)
    return pathlib.Path(path)


def tails(losses: np.ndarray, found: Inspection, path: str | pathlib.Path, title: str = "") -> pathlib.Path:
    """A table's tails: Hill's estimate over the number of losses it uses, and each arm's survival function.

    Args:
      losses: The table [T, K], missing entries NaN.
      found: What ``inspect`` says of it.
      path: Where to write; the ending chooses the format.
      title: Heads the figure.
    """
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    columns = [column[np.isfinite(column)] for column in np.asarray(losses, np.float64).T]
    ranked = np.argsort(found.means, kind="stable").tolist()
    # The best arms in colour; where there are more, the rest are one grey.
    colours = {arm: COLOURS[n] for n, arm in enumerate(ranked[: len(COLOURS) - 1])}
    with plt.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained")
        for arm in reversed(ranked):
            style = {"color": colours.get(arm, "#BBBBBB"), "linewidth": 1.2 if arm in colours else 0.6}
            column = np.sort(np.abs(columns[arm]))
            counts = np.unique(np.geomspace(5, max(6, column.size // 4), 200).astype(int))
            left.plot(counts, hill_path(column, counts), **style)
            seen = column > 0
            beyond = (column.size - np.arange(column.size)) / column.size
            label = found.arms[arm] if arm in colours else None
            right.step(column[seen], beyond[seen], where="pre", label=label, **style)
        left.axhspan(1, 2, color="#000000", alpha=0.07, linewidth=0)
        left.set(xscale="log", ylim=(0, 6), xlabel="largest losses used, k", ylabel="Hill estimate of the tail index")
        left.annotate("1 to 2: the theory's heavy tails", (0.02, 1.05), xycoords=("axes fraction", "data"), fontsize=7)
        right.set(xlabel="z", ylabel="share of rounds with |loss| at least z")
        if found.quantiles[-1] > 0:  # otherwise a logarithmic axis would have nothing on it
            right.set(xscale="log", yscale="log")
            right.axvline(found.quantiles[-1], color="black", linewidth=0.6, linestyle="--")
            right.annotate("99 %", (found.quantiles[-1], 1.0), fontsize=7)
        handles, labels = right.get_legend_handles_labels()
        right.legend(handles[::-1], labels[::-1], frameon=False, fontsize=7, title="least mean first", title_fontsize=7)
        for panel in (left, right):
            panel.grid(True, which="major", linewidth=0.4, alpha=0.5)
        figure.suptitle(title)
        figure.savefig(path, dpi=160)
        plt.close(figure)
    return pathlib.Path(path)


def _scale_regret(panel, low: np.ndarray) -> None:
    """Logarithmic, or linear around 0 where a policy beats every fixed arm."""
    if np.nanmin(low) > -1:
        panel.set_yscale("log")
        panel.set_ylim(bottom=max(np.nanmin(low[low > 0], initial=1.0) / 2, 1e-2))
        return
    panel.set_yscale("symlog", linthresh=10, linscale=0.5)
    panel.axhline(0, color="black", linewidth=0.6)
    panel.annotate("below 0: better than every fixed arm", (0.02, 0.02), xycoords="axes fraction", fontsize=7)
