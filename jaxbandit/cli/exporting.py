"""The command ``jaxbandit export``: results as files for papers, spreadsheets and other programs."""

import pathlib
from typing import Annotated

import typer

from jaxbandit import outputs
from jaxbandit.cli import layout
from jaxbandit.cli.options import Data, Source, Trust


def export(
    source: Source,
    out: Annotated[
        pathlib.Path | None, typer.Option(help="Directory for the files; default `export` beside the data.")
    ] = None,
    csv: Annotated[bool, typer.Option("--csv", help="Write table.csv and curves.csv; the default.")] = False,
    parquet: Annotated[bool, typer.Option("--parquet", help="Write table.parquet and curves.parquet.")] = False,
    latex: Annotated[bool, typer.Option("--latex", help="Write table.tex, which needs the package booktabs.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Write table.md.")] = False,
    data: Data = None,
    trust: Trust = False,
) -> None:
    """Writes final regret as a table, and regret at every recorded round, for papers and for other programs."""
    from jaxbandit import plots
    from jaxbandit.analysis import final, table
    from jaxbandit.analysis.outcomes import outcomes
    from jaxbandit.dataset.results import labelled
    from jaxbandit.store.assemble import opened

    ds = labelled(opened(source))
    stats = final.final_summary(ds)
    found = outcomes(ds, stats, plots.environments_of(ds, data, trust=trust))
    folder = out or outputs.folder_in(source if source.is_dir() else source.parent, "export")
    curves = list(table.curves(stats))
    texts: dict[str, str] = {}
    if csv or not (parquet or latex or markdown):
        texts |= {"table.csv": table.to_csv(found), "curves.csv": table.rows_csv(curves)}
    if latex:
        texts["table.tex"] = table.to_latex(found)
    if markdown:
        texts["table.md"] = table.to_markdown(found)
    frames = {"table.parquet": [one.row() for one in found], "curves.parquet": curves} if parquet else {}
    console = layout.make_console()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            outputs.write_text(folder / name, text)
        for name, rows in frames.items():
            _write_parquet(rows, folder / name)
    except OSError as error:
        raise ValueError(f"cannot write to {folder}: {error}; choose another directory with --out") from None
    for name in (*texts, *frames):
        layout.say_place(console, "export", folder / name)


def _write_parquet(rows: list[dict], path: pathlib.Path) -> None:
    try:
        import pandas
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise ValueError(f"writing .parquet needs {error.name}; install it: pip install 'jaxbandit[data]'") from None
    with outputs.replacing(path) as temporary:
        pandas.DataFrame(rows).to_parquet(temporary, engine="pyarrow", index=False)
