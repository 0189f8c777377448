"""Tables that come from no study file: the certificate and the errata of the analysis, and fresh seeds."""

import hashlib
import pathlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxbandit.certify import certificates
from jaxbandit.certify.errata import Slip, errata
from jaxbandit.certify.outcome import listings
from jaxbandit.published import fresh
from jaxbandit.published.texts import markdown


class Computation(NamedTuple):
    """Numbers that come from a function.

    Attributes:
      compute: The function, of the checkout and a directory; if there is a directory, it may keep finished games there.
      size: Its size, in words.
      short: Function of the checkout that returns a digest of a short form of it; None if it is short itself.
    """

    compute: Callable[[pathlib.Path, pathlib.Path | None], Any]
    size: str
    short: Callable[[pathlib.Path], str] | None = None


def certificate(found: Any) -> str:
    """Makes the tables of ``jaxbandit certify`` and a line for each control."""
    ds, controls = found
    parts = [f"{int(ds.violations.sum())} violations, {int(ds.failed.sum())} failed games."]
    for title, heads, rows in listings(ds):
        escaped = [[entry.replace("|", "\\|") for entry in row] for row in rows]
        parts += [f"{title[0].upper()}{title[1:]}:", markdown(heads, escaped, left=len(heads))]
    said = [
        f"- Control *{name}* " + (f"violates {', '.join(facts)}." if facts else "was NOT detected.")
        for name, facts in controls.items()
    ]
    return "\n\n".join([*parts, "\n".join(said)])


def slips(found: Sequence[Slip]) -> str:
    """Makes the table of slips in the printed analysis."""
    return markdown(["where", "printed", "what holds", "the number"], found, left=4)


def _certified(_: pathlib.Path, directory: pathlib.Path | None) -> Any:
    ds = certificates.certify(certificates.default_environments(), directory=directory)
    return ds, certificates.run_controls()


def _short_certificate(_: pathlib.Path) -> str:
    """Returns a digest of a few short games with their checks."""
    label, environment = next(iter(certificates.default_environments().items()))
    ds = certificates.certify({label: environment}, horizon=200, num_seeds=16, steps=False)
    found = hashlib.sha256()
    for name in ("violations", "worst", "round", "ratio"):
        found.update(np.ascontiguousarray(ds[name].values, "<f8").tobytes())
    return found.hexdigest()[:12]


COMPUTED: dict[str, Computation] = {
    "certify": Computation(
        _certified, f"{certificates.NUM_SEEDS:,} seeds, {certificates.HORIZON:,} rounds", _short_certificate
    ),
    "errata": Computation(lambda *_: errata(), "4 seeds"),
    "fresh": Computation(fresh.play, f"seed + {fresh.APART:,}", fresh.short),
}
