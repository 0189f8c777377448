"""The tutorial as a notebook: ``python -m benchmarks.notebook`` makes and executes notebooks/tutorial.ipynb.

It is made of docs/tutorial.md. Text becomes text cells and code becomes code cells. TOML becomes a cell that writes the
file, and a ``jaxbandit`` command a cell that runs it. A kernel then executes all cells in an empty directory, which
needs the packages nbclient and ipykernel (``pip install nbclient ipykernel``).
"""

import json
import os
import pathlib
import re
import sys
import tempfile
from typing import Any

ROOT = pathlib.Path(__file__).parents[1]
PAGE, NOTEBOOK = ROOT / "docs" / "tutorial.md", ROOT / "notebooks" / "tutorial.ipynb"
BLOCK = re.compile(r"^```(python|toml|bash|text)\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:|#)([^)]+)\)")
MACHINE = re.compile(r"^compiled .*\n|\x1b\[\d*m", re.MULTILINE)  # times of one machine, colours of a terminal


def made(page: str) -> str:
    """Returns the notebook of a page as JSON; no cell has been executed yet."""
    cells: list[dict[str, Any]] = []
    parts = BLOCK.split(page)
    for text, language, code in zip(parts[::3], [*parts[1::3], ""], [*parts[2::3], ""], strict=True):
        if text.strip():
            cells.append(_cell("markdown", LINK.sub(r"](../docs/\1)", text.strip())))
        if language and language != "text":
            cells.append(_code(language, code.rstrip("\n")))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return _json({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})


def executed(notebook: str) -> str:
    """Returns a notebook with the execution counts and outputs that a kernel of this environment gives."""
    import nbclient
    import nbformat

    whole = nbformat.reads(notebook, as_version=4)
    with tempfile.TemporaryDirectory() as directory:
        here = {"PATH": os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])}
        client = nbclient.NotebookClient(whole, timeout=600, resources={"metadata": {"path": directory}})
        client.execute(env=os.environ | here | {"MPLBACKEND": "module://matplotlib_inline.backend_inline"})
    for cell in (cell for cell in whole.cells if cell.cell_type == "code"):
        cell.metadata.clear()  # the clock
        printed = "".join(output.text for output in cell.outputs if output.get("name") == "stdout")
        shown = [output for output in cell.outputs if output.output_type != "stream"]
        stream = nbformat.v4.new_output("stream", name="stdout", text=MACHINE.sub("", printed))
        cell.outputs = [*([stream] if printed else []), *shown]
    whole.metadata = json.loads(notebook)["metadata"]
    return _json(json.loads(nbformat.writes(whole)))


def _json(notebook: dict[str, Any]) -> str:
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _code(language: str, code: str) -> dict[str, Any]:
    if language == "toml":
        name = code.split()[1].rstrip(":")
        code = f"%%writefile {name}\n{code}"
    elif language == "bash":
        code = f"%%bash\n{code}"
    return _cell("code", code) | {"execution_count": None, "outputs": []}


def _cell(kind: str, source: str) -> dict[str, Any]:
    return {"cell_type": kind, "metadata": {}, "source": source.splitlines(keepends=True)}


def write() -> None:
    """Executes the notebook and writes it."""
    NOTEBOOK.write_text(executed(made(PAGE.read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    write()
