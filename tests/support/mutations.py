"""Changes of a table at random places, as studies and manifests that somebody else wrote may have them."""

import copy
import datetime

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
