"""The tutorial as a notebook: ``python -m benchmarks.notebook`` writes notebooks/tutorial.ipynb from docs/tutorial.md.

Text becomes text cells, code becomes code cells, and the outputs are those of the page, which ``benchmarks.pages`` made
by running it. TOML becomes a cell that writes the file, and a ``jaxbandit`` command a cell that runs it.
"""

import json
import pathlib
import re
from typing import Any

ROOT = pathlib.Path(__file__).parents[1]
PAGE, NOTEBOOK = ROOT / "docs" / "tutorial.md", ROOT / "notebooks" / "tutorial.ipynb"
BLOCK = re.compile(r"^```(python|toml|bash|text)\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:|#)([^)]+)\)")


def made(page: str) -> str:
    """Returns the notebook of a page as JSON."""
    cells: list[dict[str, Any]] = []
    parts = BLOCK.split(page)
    for text, language, code in zip(parts[::3], [*parts[1::3], ""], [*parts[2::3], ""], strict=True):
        if text.strip():
            cells.append(_cell("markdown", LINK.sub(r"](../docs/\1)", text.strip())))
        if language == "text":
            cells[-1]["outputs"] = [{"name": "stdout", "output_type": "stream", "text": code.splitlines(keepends=True)}]
        elif language:
            cells.append(_code(language, code.rstrip("\n")))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    whole = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _code(language: str, code: str) -> dict[str, Any]:
    if language == "toml":
        name = code.split()[1].rstrip(":")
        code = f"%%writefile {name}\n{code}"
    elif language == "bash":
        code = "\n".join(f"!{line}" for line in code.splitlines())
    return _cell("code", code) | {"execution_count": None, "outputs": []}


def _cell(kind: str, source: str) -> dict[str, Any]:
    return {"cell_type": kind, "metadata": {}, "source": source.splitlines(keepends=True)}


def write() -> None:
    """Writes the notebook."""
    NOTEBOOK.write_text(made(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    write()
