"""The decorator that makes a policy or an environment data, and the checks of its fields.

A policy or environment is a frozen dataclass whose fields are pytree leaves: a hyperparameter is traced,
never compiled in, so an object with stacked fields is a sweep. ``field(static=True)`` is kept for
what decides a shape or a branch of the definition.
"""

from jaxbandit.types.decorator import pytree as pytree
from jaxbandit.types.fields import ONE_PER_ARM as ONE_PER_ARM
from jaxbandit.types.fields import Array as Array
from jaxbandit.types.fields import Numbers as Numbers
from jaxbandit.types.fields import as_whole as as_whole
from jaxbandit.types.fields import field as field
from jaxbandit.types.fields import field_values as field_values
from jaxbandit.types.fields import fingerprint as fingerprint
from jaxbandit.types.fields import format_number as format_number
from jaxbandit.types.fields import is_static as is_static
from jaxbandit.types.fields import public_fields as public_fields
from jaxbandit.types.fields import public_name as public_name
from jaxbandit.types.fields import rank as rank
from jaxbandit.types.fields import required_fields as required_fields
from jaxbandit.types.fields import shared_leaves as shared_leaves
from jaxbandit.types.validation import check_made as check_made
from jaxbandit.types.validation import check_single as check_single
from jaxbandit.types.validation import validate as validate
