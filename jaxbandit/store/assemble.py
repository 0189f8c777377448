"""The dataset of a store's cells, whose values are read when they are used."""

import functools
import os
import pathlib
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from xarray.backends import BackendArray
from xarray.core import indexing

from jaxbandit.checks import total_memory
from jaxbandit.dataset import labels
from jaxbandit.store import cellfile, form, seal
from jaxbandit.store.cellfile import Header
from jaxbandit.store.cover import Piece, covered
from jaxbandit.store.directory import Store, StoreError


def load(directory: str | os.PathLike) -> xr.Dataset:
    """Opens the results directory of a run as one dataset.

    At first files are verified and headers read; values are read cell by cell when they are used. If Dask is installed,
    ``ds.chunk()`` hands the dataset to it, for reductions of data that do not fit into memory. Games that have not been
    played yet are missing values (NaN; -1 in ``failed``), and ``seeds`` has the number of seeds of each pair. Every
    file is compared with its digest. A damaged or foreign file, or one under another cell's name, is named in a warning
    and left out. Cells that an earlier version wrote without a digest cause one warning: they are unverified. Cells of
    several platforms are noted in a warning and in ``ds.platforms``.

    Args:
      directory: The ``--out`` directory of ``jaxbandit run``.

    Returns:
      A dataset with dimensions ``policy``, ``environment``, ``seed``, ``round`` as from ``simulate``.
    """
    store = Store(directory)
    manifest = store.manifest()
    if manifest is None:
        raise StoreError(f"{store.directory} holds no study; give the directory that `jaxbandit run` wrote to (--out)")
    return assembled(store, manifest, store.headers())


def opened(source: pathlib.Path) -> xr.Dataset:
    """Opens the results of `run`: the cells of its directory or, if there are none, the dataset in one file."""
    if source.is_dir() and Store(source).manifest() is not None:
        ds = load(source)
        if ds.nbytes > total_memory():
            raise ValueError(
                f"the results in {source} take {ds.nbytes:,} bytes, and this machine has {total_memory():,.0f}; open "
                f"them with jb.load({str(source)!r}), which reads only the values that you use"
            )
        return ds.load()
    path = source / "dataset.nc" if source.is_dir() else source
    if not path.is_file():
        raise ValueError(f"{path} does not exist; give the directory that `jaxbandit run` wrote, or a dataset (.nc)")
    try:
        ds, verified = seal.read_dataset(path)
    except seal.BadFileError as error:
        raise ValueError(
            f"{path} is no dataset: it {error}; give the directory that `jaxbandit run` wrote, or the dataset.nc in it"
        ) from None
    if cellfile.MARK in ds.attrs:
        raise ValueError(f"{path} is one cell of a study; give the directory that `jaxbandit run` wrote")
    if not verified:
        warnings.warn(f"{path} is unverified: it has no digest, so damage would not be seen", stacklevel=2)
    ds = form.in_order(ds)
    why = form.problem(ds)
    if why is None and not np.isfinite(ds.failed.values).all():  # here, where the values are in memory already
        why = "`failed` is not finite"
    if why:
        raise ValueError(
            f"{path} is no dataset of results: {why}; give the directory that `jaxbandit run` wrote, or a dataset as "
            "simulate() returned it"
        )
    return ds


def assembled(store: Store, manifest: dict[str, Any], headers: Sequence[Header]) -> xr.Dataset:
    """Returns the dataset of a manifest, made from the given files."""
    by_pair: dict[str, list[Header]] = {}
    for header in headers:
        by_pair.setdefault(header.pair, []).append(header)
    rounds = tuple(manifest["rounds"])
    summary = manifest["keep"] == "summary"
    pairs, asked = manifest["games"], manifest["seeds"]
    order = _platforms_by_use([header for row in pairs for pair in row for header in by_pair.get(pair, [])])
    stops = manifest.get("stops", [[rounds[-1] for _ in row] for row in pairs])  # a policy may stop earlier
    pieces = [
        [
            _pick(by_pair.get(pair, []), count, tuple(n for n in rounds if n <= stop), summary, order)
            for pair, count, stop in zip(row, counts, ends, strict=True)
        ]
        for row, counts, ends in zip(pairs, asked, stops, strict=True)
    ]
    counts = [[sum(n <= stop for n in rounds) for stop in row] for row in stops]
    used = [piece.header for row in pieces for cell in row for piece in cell]
    if not used:
        raise StoreError(
            f"{store.directory} holds no finished cell of its study yet; run it first (`jaxbandit run` with this --out)"
        )
    coords = {name: (tuple(said["dims"]), _values(said["values"])) for name, said in manifest["coords"].items()}
    seeds = np.asarray([[sum(piece.last - piece.first for piece in cell) for cell in row] for row in pieces])
    if not summary:
        most = max(map(max, asked))
        if 8 * most * len(rounds) > total_memory():
            raise StoreError(
                f"{store.directory / 'store.json'} asks for {most:,} seeds: the regret of one pair would take "
                f"{8 * most * len(rounds):,} bytes, and this machine has {total_memory():,.0f}. If that number of "
                "seeds is wrong, move store.json away and run the study again; the cells beside it are kept"
            )
        coords["seed"] = (("seed",), np.arange(most))
    else:
        coords["quantile"] = (("quantile",), np.asarray(labels.QUANTILES))
    ds = xr.Dataset(coords=coords)
    for name, (shape, dtype) in cellfile.read_shapes(used[0]).items():
        if all(name in header.variables for header in used):
            whole = _complete(seeds, asked, ds, summary) and min(map(min, stops)) == rounds[-1]
            stack = _Stack(name, pieces, counts, _shape(name, shape, ds.sizes, summary), dtype, whole)
            dims = labels.variable_dims(name, len(stack.shape) - 2, "seed" in ds.sizes)
            attrs = {"long_name": labels.LONG_NAMES.get(name, name)}
            ds[name] = xr.Variable(("policy", "environment", *dims), indexing.LazilyIndexedArray(stack), attrs)
    ds["seeds"] = (("policy", "environment"), seeds, {"long_name": "seeds played"})
    note = _platform_note(used, order)
    infinite = sum({header.path: header.infinite for header in used}.values())
    ds = ds.assign_attrs(manifest["attrs"] | {"infinite_losses": infinite} | note)
    if why := form.problem(ds):
        raise StoreError(f"the results in {store.directory} cannot be used: {why}; play the study in a new directory")
    return ds


class _Stack(BackendArray):
    """A variable of all pairs, [policy, environment, ...], which is read from their files piece by piece."""

    def __init__(
        self,
        name: str,
        pieces: list[list[list[Piece]]],
        counts: list[list[int]],  # numbers of recorded rounds
        shape: tuple[int, ...],
        dtype: Any,
        complete: bool,
    ):
        self.name, self.pieces, self.counts = name, pieces, counts
        self.summary = "regret" not in pieces_of(pieces)[0].header.variables
        self.shape = shape
        floats = not complete and name != "failed" and not np.issubdtype(dtype, np.floating)
        self.dtype = np.dtype(np.float64) if floats else np.dtype(dtype)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> np.ndarray:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.BASIC, self._get)

    def _get(self, key: tuple) -> np.ndarray:
        policies, environments = (np.arange(size)[at] for size, at in zip(self.shape, key[:2], strict=False))
        outer = np.empty((np.size(policies), np.size(environments)), object)
        for n, p in enumerate(np.ravel(policies)):
            for m, e in enumerate(np.ravel(environments)):
                outer[n, m] = self._cell(self.pieces[p][e], self.counts[p][e], key[2:])
        stacked = np.stack([np.stack(row.tolist()) for row in outer]) if outer.size else self._none(outer.shape, key)
        return stacked[tuple(0 if isinstance(at, int | np.integer) else slice(None) for at in key[:2])]

    def _none(self, outer: tuple[int, ...], key: tuple) -> np.ndarray:
        inner = np.empty(self.shape[2:], self.dtype)[key[2:]].shape
        return np.empty((*outer, *inner), self.dtype)

    def _cell(self, pieces: list[Piece], count: int, key: tuple) -> np.ndarray:
        """Returns the values of one pair, with missing ones filled."""
        if self.summary:
            return self._filled([(self._pooled(pieces, count), 0)] if pieces else [], self.shape[2:])[key]
        seed = key[0]
        wanted = np.arange(self.shape[2])[seed]
        low, high = (int(wanted.min()), int(wanted.max()) + 1) if wanted.size else (0, 0)
        read = []
        for piece in pieces:
            first, last = max(piece.first, low), min(piece.last, high)
            if first < last:
                rows = slice(first - piece.header.first, last - piece.header.first)
                rest = (slice(0, count),) if len(self.shape) > 3 else ()
                read.append((cellfile.read_part(piece.header, self.name, (rows, *rest)), first - low))
        block = self._filled(read, (high - low, *self.shape[3:]))
        inside = seed - low if isinstance(seed, int | np.integer) else wanted - low
        return block[(inside, *key[1:])]

    def _filled(self, parts: list[tuple[np.ndarray, int]], shape: tuple[int, ...]) -> np.ndarray:
        """Puts parts at their places along the first axis; arms that an environment lacks get 0 pulls."""
        fill = -1 if self.name == "failed" else np.nan if np.issubdtype(self.dtype, np.floating) else 0
        out = np.full(shape, fill, self.dtype)
        dims = labels.variable_dims(self.name, len(shape), not self.summary)
        for values, at in parts:
            where = tuple(slice(at * (n == 0), at * (n == 0) + size) for n, size in enumerate(values.shape))
            out[tuple(slice(None) if dim == "arm" else s for s, dim in zip(where, dims, strict=True))] = 0
            out[where] = values
        return out

    def _pooled(self, pieces: list[Piece], count: int) -> np.ndarray:
        """Combines the summaries of several blocks of seeds: exact except for quantiles, which are averaged."""
        rounds = {"regret_quantile": (slice(None), slice(0, count)), "failed": ()}
        key = rounds.get(self.name, (slice(0, count),) if len(self.shape) > 2 else ())
        read = functools.partial(cellfile.read_part, key=key)
        values = [read(piece.header, self.name) for piece in pieces]
        if len(values) == 1:
            return values[0]
        counts = np.asarray([piece.header.num_seeds for piece in pieces], np.float64)
        if self.name == "failed":
            return np.asarray(sum(values))
        if self.name != "regret_stderr":
            return np.asarray(np.tensordot(counts / counts.sum(), np.stack(values), 1))
        means = np.stack([read(piece.header, "regret_mean") for piece in pieces])
        return _pooled_stderr(np.stack(values), means, counts[:, None])


def pieces_of(pieces: list[list[list[Piece]]]) -> list[Piece]:
    """Returns all pieces in one list."""
    return [piece for row in pieces for cell in row for piece in cell]


def _pooled_stderr(stderr: np.ndarray, means: np.ndarray, counts: np.ndarray) -> np.ndarray:
    total = counts.sum()
    within = np.where(counts > 1, stderr**2 * counts * (counts - 1), 0).sum(axis=0)
    mean = (means * counts).sum(axis=0) / total
    between = (counts * (means - mean) ** 2).sum(axis=0)
    return np.sqrt((within + between) / (total - 1) / total)


def _shape(name: str, shape: tuple[int, ...], sizes: Any, summary: bool) -> tuple[int, ...]:
    """Returns the shape over all pairs; an unknown dimension keeps its length."""
    dims = labels.variable_dims(name, len(shape), not summary)
    inner = [sizes.get(dim, length) for dim, length in zip(dims, shape, strict=True)]
    return (sizes["policy"], sizes["environment"], *inner)


def _complete(seeds: np.ndarray, asked: list[list[int]], ds: xr.Dataset, summary: bool) -> bool:
    """Returns whether no value is missing: each pair has its wanted seeds, and all have equally many."""
    return bool((seeds == asked).all()) and (summary or bool((seeds == ds.sizes["seed"]).all()))


def _pick(headers: Sequence[Header], count: int, rounds: tuple[int, ...], whole: bool, order: list[str]) -> list[Piece]:
    """Selects files of one platform if these cover as many seeds as all files together, else files of several."""
    ranked = sorted({_platform(header) for header in headers}, key=order.index)
    best: list[Piece] = []
    for name in ranked:
        pieces = covered([header for header in headers if _platform(header) == name], count, rounds, whole)
        if _seeds(pieces) > _seeds(best):
            best = pieces
    mixed = covered(headers, count, rounds, whole)
    return best if _seeds(best) >= _seeds(mixed) else mixed


def _seeds(pieces: list[Piece]) -> int:
    return sum(piece.last - piece.first for piece in pieces)


def _platform(header: Header) -> str:
    return ", ".join(f"{name} {value}" for name, value in header.platform.items() if value)


def _platforms_by_use(headers: Sequence[Header]) -> list[str]:
    counts: dict[str, int] = {}
    for header in headers:
        counts[_platform(header)] = counts.get(_platform(header), 0) + header.num_seeds
    return sorted(counts, key=lambda name: (-counts[name], name))


def _platform_note(used: Sequence[Header], order: list[str]) -> dict[str, str]:
    present = [name for name in order if name in {_platform(header) for header in used}]
    said = {name: str(value) for name, value in used[0].platform.items()}
    if len(present) > 1:
        warnings.warn(
            f"this directory holds cells of {len(present)} platforms ({'; '.join(present)}). Their numbers follow the "
            "same law but differ in the last bits. To compare bits, play the study again in a new directory (--out)",
            stacklevel=4,
        )
    return {**said, "platforms": "; ".join(present)}


def _values(values: list) -> np.ndarray:
    array = np.asarray(values)
    return array.astype(str) if array.dtype == object else array
