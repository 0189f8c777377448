"""The reader of tables as text: CSV and TSV files, and others with a delimiter between the entries."""

import csv
import pathlib
from collections.abc import Sequence

import numpy as np


def read(path: pathlib.Path, header: bool | None, delimiter: str) -> tuple[Sequence[str], np.ndarray]:
    """Returns the names of the columns, none if the file has no line of names, and the entries as text."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        try:
            reader = csv.reader(file, strict=True, delimiter=delimiter)
            lines = [(reader.line_num, row) for row in reader if row]
        except csv.Error as error:
            raise ValueError(f"{path} is not valid CSV: {error}") from None
    if not lines:
        raise ValueError(f"{path} is empty; write the names of the arms in the first line and a round in every other")
    first = lines[0][1]
    other = next((sign for sign in ";\t|," if sign in first[0]), None) if len(first) == 1 else None
    if other:
        raise ValueError(
            f"{path} has one column, because no {delimiter!r} is in its first line, {first[0][:40]!r}; pass "
            f"delimiter={other!r} (on the command line: --delimiter '{other}')"
        )
    if header is None and all(_is_number(cell) for cell in first):
        raise ValueError(
            f"{path} starts with numbers ({', '.join(first)[:40]}), not with names of arms; "
            "put a line of names first, or pass header=False (the line is a round) or header=True (they are names)"
        )
    names = [] if header is False else [name.strip() for name in first]
    body = lines if header is False else lines[1:]
    for line, row in body:
        if len(row) != len(first):
            raise ValueError(
                f"{path}, line {line}: {len(row)} entries, but the first line has {len(first)}; "
                "give every round one loss per arm"
            )
    return names, np.asarray([row for _, row in body], dtype=object).reshape(len(body), len(first))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
