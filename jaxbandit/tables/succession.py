"""The dependence of successive rounds of a measured table: repeated entries and rank correlations."""

import math
from collections.abc import Sequence

import numpy as np

REPEATED = 0.1  # share of entries, beyond chance, that may equal the entry of the round before


def repetition(table: np.ndarray, columns: Sequence[np.ndarray]) -> tuple[float, float]:
    """Returns the share of entries that equal the one before, and that share in random order, if the first is large.

    Of n entries of an arm, of which m share a value, m (m - 1) / n repeat this value on average in random order.
    """
    known = np.isfinite(table[1:]) & np.isfinite(table[:-1])
    pairs = int(known.sum())
    repeated = int(((table[1:] == table[:-1]) & known).sum()) / pairs if pairs else 0.0
    if repeated <= REPEATED:
        return repeated, 0.0
    expected = 0.0
    for column in columns:
        alike = np.unique(column, return_counts=True)[1].astype(float)
        expected += float((alike * (alike - 1)).sum()) / column.size
    return repeated, min(1.0, expected / sum(column.size - 1 for column in columns))


def persistence(table: np.ndarray, columns: Sequence[np.ndarray]) -> float:
    """Returns the median over arms of the rank correlation of one entry with the next; NaN if no arm has one."""
    whole = all(column.size == table.shape[0] for column in columns)
    tables = [table] if whole else [column[:, None] for column in columns]  # else columns differ in length
    found = [_rank_correlations(some[:-1], some[1:]) for some in tables if len(some) > 2]
    known = [value for some in found for value in some[~np.isnan(some)]]
    return float(np.median(known)) if known else math.nan


def _rank_correlations(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Returns the rank correlation of each column of one table with that of another; NaN if a column is constant."""
    first, second = (ranks - ranks.mean(axis=0) for ranks in (_ranks(one), _ranks(other)))
    with np.errstate(invalid="ignore"):
        return (first * second).sum(axis=0) / np.sqrt((first**2).sum(axis=0) * (second**2).sum(axis=0))


def _ranks(table: np.ndarray) -> np.ndarray:
    """Returns the ranks within each column; tied values share the middle of their ranks."""
    order = np.argsort(table, axis=0)
    ordered = np.take_along_axis(table, order, axis=0)
    place = np.broadcast_to(np.arange(len(table))[:, None], table.shape)
    differs = ordered[1:] != ordered[:-1]
    edge = np.ones((1, table.shape[1]), bool)
    first = np.maximum.accumulate(np.where(np.concatenate([edge, differs]), place, 0), axis=0)
    last = np.minimum.accumulate(np.where(np.concatenate([differs, edge]), place, len(table))[::-1], axis=0)[::-1]
    ranks = np.empty(table.shape)
    np.put_along_axis(ranks, order, 1 + (first + last) / 2, axis=0)
    return ranks
