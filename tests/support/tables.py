"""A table of losses, written as any kind of file."""

import numpy as np
import pytest

LOSSES = np.asarray([[0.25, -1.5, 3.0], [1e-3, 2.0, 7.5], [4.0, 0.0, 1e6], [1.0, 1.0, 1.0]])
ARMS = ("paris", "oslo", "new york")


def write(folder, kind, losses=LOSSES, arms=ARMS):
    path = folder / f"latency.{kind}"
    if kind == "npy":
        np.save(path, losses)
    elif kind == "npz":
        np.savez(path, losses=losses, arms=np.asarray(arms), clients=np.arange(7))
    elif kind == "csv":
        rows = [",".join(map(repr, row)) for row in np.asarray(losses).tolist()]
        path.write_text("\n".join([",".join(arms), *rows, ""]))
    else:
        pandas = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        pandas.DataFrame(losses, columns=list(arms)).to_parquet(path)
    return path
