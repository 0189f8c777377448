"""Where results are kept: lines of ``results.jsonl`` with commit and machine, and the tables of docs/speed.md."""

import datetime
import json
import pathlib
import platform
import re
import statistics
import subprocess
from typing import Any

import jax

from jaxbandit.engine import usable_cores

ROOT = pathlib.Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results.jsonl"
PAGE = ROOT / "docs" / "speed.md"
IMAGES = ROOT / "docs" / "img"


def keep(benchmark: str, values: dict[str, Any]) -> dict[str, Any]:
    """Appends a line: when, which commit, which machine, what was measured."""
    line = {
        "benchmark": benchmark,
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "commit": commit(),
        "machine": machine(),
        "jax": jax.__version__,
        **values,
    }
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    return line


def kept(benchmark: str) -> list[dict[str, Any]]:
    """Returns the lines of a benchmark, oldest first."""
    if not RESULTS.exists():
        return []
    lines = [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [line for line in lines if line["benchmark"] == benchmark]


def usual(benchmark: str, value: str, last: int = 5) -> float | None:
    """Returns the median of a value over the last lines of this machine; None if there are none."""
    lines = [line for line in kept(benchmark) if line["machine"] == machine()][-last:]
    return statistics.median(line[value] for line in lines) if lines else None


def commit() -> str:
    """Returns the commit that was measured, with ``+`` if code differs from it. Pages and kept results do not count."""
    changed = _git("status", "--porcelain", "--", ".", ":!docs", ":!README.md", ":!benchmarks/results.jsonl")
    return (_git("rev-parse", "--short", "HEAD") or "unknown") + ("+" if changed else "")


def _git(*arguments: str) -> str:
    """Returns the output of git; empty if there is no git."""
    try:
        return subprocess.run(["git", *arguments], capture_output=True, text=True, cwd=ROOT).stdout.strip()
    except OSError:
        return ""


def machine() -> str:
    """Returns the kind of machine: processor and cores."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{models[0] if models else platform.processor() or platform.machine()}, {usable_cores()} cores"


def heading(what: str) -> str:
    """Returns the line above a table that names the machine and the commit of its figures."""
    return f"{what} {machine()}, commit {commit()}.\n"


def publish(mark: str, text: str, page: pathlib.Path = PAGE) -> None:
    """Puts ``text`` between the marks of that name on the page."""
    page.write_text(replaced(page.read_text(encoding="utf-8"), mark, text), encoding="utf-8")


def replaced(page: str, mark: str, text: str) -> str:
    """Returns the page with the text between two marks replaced."""
    pattern = rf"(<!-- {mark} -->\n).*?(<!-- end of {mark} -->)"
    if not re.search(pattern, page, re.DOTALL):
        raise ValueError(f"the page lacks the marks <!-- {mark} --> and <!-- end of {mark} -->; add both")
    return re.sub(pattern, lambda found: f"{found[1]}{text.strip()}\n{found[2]}", page, flags=re.DOTALL)
