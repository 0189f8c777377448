"""Mutated study files: each is read, or refused in words."""

import pathlib
import random
import tomllib
import warnings

import pytest
import tomli_w

from jaxbandit.studies import study
from tests.support.hangs import no_hang
from tests.support.mutations import mutated

EXPERIMENTS = pathlib.Path(__file__).parents[2] / "experiments"
TRIES = [
    pytest.param(40, id="40"),
    pytest.param(250, id="250", marks=pytest.mark.slow),
    pytest.param(5_000, id="5000", marks=pytest.mark.long),
]


def garbled(text, rng):
    """Changes some letters."""
    letters = list(text)
    for _ in range(rng.choice([1, 2, 5, 20])):
        at = rng.randrange(len(letters))
        letters[at : at + rng.choice([0, 1, 1, 9])] = rng.choice(
            ["", "\0", "[", "]", "{", '"', "=", "9", "\n", "é", "-"]
        )
    return "".join(letters)


@pytest.mark.parametrize("tries", TRIES)
def test_mutated_studies_are_read_or_refused(tmp_path, tries):
    texts = [path.read_text() for path in sorted(EXPERIMENTS.glob("*.toml"))]
    rng = random.Random(21)
    path, refused = tmp_path / "study.toml", 0
    for number in range(tries):
        text = rng.choice(texts)
        text = garbled(text, rng) if number % 4 == 0 else tomli_w.dumps(mutated(tomllib.loads(text), rng))
        path.write_text(text)
        try:
            with no_hang(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                study.Study.load(path, tmp_path, quick=rng.random() < 0.5)
        except ValueError as error:
            refused += 1
            assert str(path) in str(error) and 20 < len(str(error)) < 20_000, error
        except BaseException as error:
            error.add_note(f"try {number}:\n{text}")
            raise
    print(f"{tries} studies, {refused} refused")
