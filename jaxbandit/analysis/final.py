"""The summary of a study at the end of its games, and sentences about broken games."""

from collections.abc import Iterator

import xarray as xr

from jaxbandit.dataset.results import summary

SUMMARY_BYTES = 256 << 20  # of regret that is summarised at once


def final_summary(ds: xr.Dataset) -> xr.Dataset:
    """Returns ``jb.summary`` of a dataset that may not fit into memory: it reads a few pairs at a time."""
    if "regret" not in ds:
        return summary(ds).assign(seeds=ds.seeds)
    per_cell = max(1, ds.regret.nbytes // max(1, ds.sizes["policy"] * ds.sizes["environment"]))
    at_once = max(1, SUMMARY_BYTES // (4 * per_cell))
    environments = max(1, min(at_once, ds.sizes["environment"]))
    policies = max(1, at_once // environments)
    rows = []
    for p in range(0, ds.sizes["policy"], policies):
        row = [
            summary(
                ds[["regret", "failed"]].isel(policy=slice(p, p + policies), environment=slice(e, e + environments))
            )
            for e in range(0, ds.sizes["environment"], environments)
        ]
        rows.append(xr.concat(row, "environment") if len(row) > 1 else row[0])
    whole = xr.concat(rows, "policy") if len(rows) > 1 else rows[0]
    return whole.assign(seeds=ds.seeds).assign_attrs(ds.attrs)


def failures(stats: xr.Dataset) -> Iterator[str]:
    """Yields a sentence for every policy with broken games, and one for infinite losses."""
    for policy in stats.policy.values:
        count = int(stats.failed.sel(policy=policy).clip(min=0).sum())  # -1: not played yet
        if count > 0:
            yield f"broken games: {count:,} of {policy}, whose state was not finite (`failed` has the first such round)"
    if stats.attrs.get("infinite_losses"):
        yield f"{stats.attrs['infinite_losses']} games suffered an infinite loss; their `loss` is inf"
