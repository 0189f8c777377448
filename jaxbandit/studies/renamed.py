"""Renamed fields in records: results and digests that were made with the first name of a field stay valid."""

import dataclasses
import json
import re
from typing import Any

from jaxbandit.environments import ENVIRONMENTS
from jaxbandit.policies import POLICIES
from jaxbandit.types import public_name, recorded_name

_FIRST = {
    public_name(spec): recorded_name(spec)
    for cls in (*POLICIES.values(), *ENVIRONMENTS.values())
    for spec in dataclasses.fields(cls)
    if spec.metadata.get("was")
}


def first_names(about: Any) -> Any:
    """Returns a description in JSON types, with every renamed field under its first name.

    Example:
      >>> first_names({"local": ["threshold_constant"], "policy": "UniINFVariant(threshold_constant=0.25)"})
      {'local': ['threshold'], 'policy': 'UniINFVariant(threshold=0.25)'}
    """
    text = json.dumps(about, default=str)
    for name, first in _FIRST.items():
        text = re.sub(rf"{name}\b", first, text)
    return json.loads(text)
