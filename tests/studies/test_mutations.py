"""Mutated study files: each is read, or refused in words."""

import copy
import datetime
import faulthandler
import pathlib
import random
import tomllib
import warnings

import pytest
import tomli_w

from jaxbandit.studies import study

SECONDS = 10
EXPERIMENTS = pathlib.Path(__file__).parents[2] / "experiments"
TRIES = [
    pytest.param(40, id="40"),
    pytest.param(250, id="250", marks=pytest.mark.slow),
    pytest.param(5_000, id="5000", marks=pytest.mark.long),
]
ODD = [
    *([], {}, "", "x", "[/]", "environment", "a:b", "os:path", "jaxbandit.types:Grid", "\0", "../..", "nan"),
    *(0, 1, -1, 2, 7, 10**6, 10**12, 2**31, 2**63, 2**64, 10**30, -(10**30), 0.0, -0.5, 1.5, 1e30, 1e-320),
    *(float("inf"), float("-inf"), float("nan"), True, False, datetime.date(2020, 1, 1), datetime.time(1)),
    *([1], [[]], [[1.0]], [{}], ["a"], [1, "a"], [0.1, 0.9], [[0.1, 0.9], [0.5]], {"name": "pareto"}, {"name": []}),
    *({"name": {}}, {"a": {"b": [{}]}}, [1.0] * 50, list(range(300)), [[0.5, 1.0]] * 9, "99%", "table.csv"),
]


def places(content, path=()):
    """Yields the path of every value."""
    for key, value in content.items() if isinstance(content, dict) else enumerate(content):
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


def mutated(content, rng):
    """Replaces, removes, renames or copies values at random places."""
    content = copy.deepcopy(content)
    for _ in range(rng.choice([1, 1, 2, 4])):
        found = list(places(content))
        if not found:
            break
        *path, key = rng.choice(found)
        inside = content
        for step in path:
            inside = inside[step]
        match rng.choice(["replace", "replace", "replace", "remove", "rename", "wrap", "copy"]):
            case "replace":
                inside[key] = copy.deepcopy(rng.choice(ODD))
            case "remove":
                del inside[key]
            case "rename" if isinstance(inside, dict):
                inside[rng.choice(["name", "label", "zip", "stop_at", "table", "law", "x", "horizon"])] = inside.pop(
                    key
                )
            case "wrap":
                inside[key] = [inside[key]] * rng.choice([1, 2, 3])
            case "copy" if isinstance(inside, list):
                inside.append(copy.deepcopy(inside[key]))
    return content


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
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                study.Study.load(path, tmp_path, quick=rng.random() < 0.5)
        except ValueError as error:
            refused += 1
            assert str(path) in str(error) and 20 < len(str(error)) < 20_000, error
        except BaseException as error:
            error.add_note(f"try {number}:\n{text}")
            raise
        finally:
            faulthandler.cancel_dump_traceback_later()
    print(f"{tries} studies, {refused} refused")
