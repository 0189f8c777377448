"""The decorator that makes a policy or an environment data, and the checks of its fields.

A policy or environment is a frozen dataclass whose fields are pytree leaves: a hyperparameter is traced,
never compiled in, so an object with stacked fields is a sweep. ``field(static=True)`` is kept for
what decides a shape or a branch of the definition.
"""

from jaxbandit.types import forms
from jaxbandit.types.decorator import pytree
from jaxbandit.types.fields import (
    ONE_PER_ARM,
    Array,
    Numbers,
    as_whole,
    current_names,
    field,
    field_values,
    fingerprint,
    format_number,
    is_static,
    public_fields,
    public_name,
    rank,
    recorded_name,
    renamed_fields,
    required_fields,
    shared_leaves,
    warn_of_first_name,
    written,
)
from jaxbandit.types.validation import PROTOCOL, check_kind, check_made, check_single, lacking, validate

__all__ = [
    "ONE_PER_ARM",
    "PROTOCOL",
    "Array",
    "Numbers",
    "as_whole",
    "check_kind",
    "check_made",
    "check_single",
    "current_names",
    "field",
    "field_values",
    "fingerprint",
    "format_number",
    "forms",
    "is_static",
    "lacking",
    "public_fields",
    "public_name",
    "pytree",
    "rank",
    "recorded_name",
    "renamed_fields",
    "required_fields",
    "shared_leaves",
    "validate",
    "warn_of_first_name",
    "written",
]
