"""The page: panels, styles, scripts and plotly.js in one file that needs no network."""

import base64
import gzip
import hashlib
import os
import pathlib
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

import xarray as xr

from jaxbandit import outputs
from jaxbandit.report import points, sections, words
from jaxbandit.report.answers import answers
from jaxbandit.report.findings import Findings, find, has_games
from jaxbandit.report.names import pretty
from jaxbandit.report.panel import Panel
from jaxbandit.version import __version__

TEMPLATES = pathlib.Path(__file__).parent / "templates"
BUNDLE = pathlib.Path(__file__).parent / "plotly" / "plotly-cartesian.min.js"  # plotly.js 4.1.1, MIT licence beside it
SCRIPTS = ("figures.js", "picker.js", "curves.js", "heat.js", "sensitivity.js", "start.js")


def write(
    source: xr.Dataset | str | os.PathLike,
    path: str | os.PathLike | None = None,
    *,
    method: str = "normal",
    simultaneous: bool = False,
    panels: Sequence[Panel] = (),
    environments: Mapping[str, Any] | None = None,
    data: str | os.PathLike | None = None,
    trust: bool = False,
) -> pathlib.Path:
    """Writes the report on a study: one HTML page that works offline.

    Args:
      source: The directory that ``jaxbandit run`` wrote, its ``dataset.nc``, or the dataset that ``simulate`` returned.
        The page also shows the results that ``jaxbandit sensitivity``, ``tune`` or ``worst`` wrote to the directory,
        even if it holds no games.
      path: The file to write; default ``report.html`` beside the data.
      method: The method of the bands, ``"normal"`` or ``"bootstrap"`` over seeds.
      simultaneous: Whether a band covers its whole curve at once.
      panels: Further parts of the page, shown before all numbers.
      environments: The environments by label, for lower bounds and proved orders; default those of the study.
      data: The directory of the study's tables, if it names any.
      trust: Whether to import environments of classes that are not part of jaxbandit. Without it, nothing that the
        results name is imported.

    Returns:
      The path.

    Example:
      >>> import tempfile, jaxbandit as jb
      >>> from jaxbandit import report
      >>> environment = jb.Bernoulli(means=[0.2, 0.8])
      >>> ds = jb.simulate([jb.Uniform(), jb.UCB1()], environment, horizon=100, num_seeds=16)
      >>> with tempfile.TemporaryDirectory() as directory:
      ...     page = report.write(ds, f"{directory}/report.html").read_text(encoding="utf-8")
      >>> "UCB1 has the least mean regret in Bernoulli" in page
      True
    """
    environment = _environment()
    if path is None:
        if isinstance(source, xr.Dataset):
            raise ValueError("path is missing: a dataset has no directory for the report; pass path='report.html'")
        given = pathlib.Path(source)
        path = (given if given.is_dir() else given.parent) / "report.html"
    path = pathlib.Path(path)

    def render(name: str, **shown: Any) -> str:
        return environment.get_template(name).render(**shown)

    directory = None if isinstance(source, xr.Dataset) or not os.path.isdir(source) else pathlib.Path(source)
    further = answers(directory, render) if directory else None
    only = further is not None and directory is not None and not has_games(directory)
    bands = {"method": method, "simultaneous": simultaneous}
    findings = None if only else find(source, **bands, environments=environments, data=data, trust=trust)
    name = "" if isinstance(source, xr.Dataset) else pathlib.Path(source).resolve().name
    made = list(sections.panels(findings, render, list(panels), further, name))
    attrs = findings.ds.attrs if findings is not None else further.attrs if further else {}
    scripts, bundle = [_file("theme.js"), "\n".join(map(_file, SCRIPTS))], BUNDLE.read_text(encoding="utf-8")
    content = render(
        "page.html",
        title=str(attrs.get("title", "")) or "Regret study",
        panels=made,
        drawings={name: points.as_json(drawing) for panel in made for name, drawing in panel.drawings().items()},
        scripts=scripts,
        packed=base64.b64encode(gzip.compress(bundle.encode(), mtime=0)).decode(),  # a third of its size
        hashes=[_hash(script) for script in (*scripts, bundle)],
        colours=_colours(findings),
        quick=findings.quick if findings is not None else bool(further and further.quick),
        version=__version__,
        now=time.strftime("%Y-%m-%d %H:%M"),
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        outputs.write_text(path, content)
    except OSError as error:
        raise ValueError(f"cannot write {path}: {error.strerror or error}; give another path with --out") from None
    return path


def _environment() -> Any:
    """Returns Jinja's environment with the filters of the templates."""
    try:
        import jinja2
        import markupsafe
    except ImportError as error:
        raise ValueError(
            f"a report needs {error.name}, which is not installed; install it with pip install 'jaxbandit[report]'"
        ) from None
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": words.number,
        "minus": lambda text: re.sub(r"(?<=[( ])-(?=\d)", "−", text),  # in sentences of earlier versions
        "probability": words.probability,
        "estimate": words.estimate,
        "lower_first": lambda text: text[:1].lower() + text[1:],
        "listed": words.listed,
        "breakable": lambda label: markupsafe.Markup(words.breakable(str(label))),
        "pretty": pretty,
        "named": lambda label: markupsafe.Markup(words.breakable(pretty(label))),
    }
    shared = {"times": words.times, "limits": words.limits, "rate": words.rate, "count": words.count, "file": _file}
    environment.globals |= shared
    return environment


def _colours(findings: Findings | None) -> dict[str, list[str]]:
    """Returns the colours of the policies on a light and on a dark page."""
    looks = points.looks([str(label) for label in findings.ds.policy.values]) if findings is not None else []
    return {theme: [look[theme] for look in looks] for theme in ("light", "dark")}


def _hash(script: str) -> str:
    """Returns the hash of a script for the content policy, so that the browser runs no other script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


def _file(name: str) -> str:
    """Reads a style or script of the page."""
    return (TEMPLATES / name).read_text(encoding="utf-8")
