"""The site: ``python -m sphinx -W docs build/site`` writes it (extra ``docs``); any warning is an error.

The build needs no network. If the inventories of other projects can be reached, then names such as ``xarray.Dataset``
become links to their documentation.
"""

import concurrent.futures
import pathlib
import sys
import urllib.request

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE / "_ext")]  # this checkout, not an installed copy

from jaxbandit.version import __version__

project = "jaxbandit"
author = "the jaxbandit authors"
release = version = __version__
html_title = f"jaxbandit {__version__}"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",  # a link to the source beside every name
    "sphinx.ext.intersphinx",
    "sphinx_copybutton",
    "mathml",
    "pages",
]
exclude_patterns = ["_ext"]
nitpicky = True  # a reference that leads nowhere is an error
# Types in signatures: a link if their page is known, plain text otherwise.
nitpick_ignore_regex = [("py:class", r"(?!jaxbandit\.[A-Z]\w*$).*")]
smartquotes = False  # an option such as --quick stays what one types, also in prose

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

add_module_names = False
autodoc_preserve_defaults = True  # a default reads as it was written
autodoc_typehints = "signature"
maximum_signature_line_length = 90  # a longer signature has one argument a line
python_display_short_literal_types = True
autodoc_member_order = "bysource"
napoleon_custom_sections = [("Attributes", "params_style")]
toc_object_entries_show_parents = "hide"

html_math_renderer = "mathml"
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_show_sourcelink = False
html_show_copyright = False
html_copy_source = False

INVENTORIES = {
    "python": "https://docs.python.org/3/",
    "numpy": "https://numpy.org/doc/stable/",
    "jax": "https://docs.jax.dev/en/latest/",
    "xarray": "https://docs.xarray.dev/en/stable/",
}


def reachable(address: str) -> bool:
    """Returns whether the inventory of a project answers within three seconds."""
    try:
        with urllib.request.urlopen(address + "objects.inv", timeout=3) as answer:
            return answer.status == 200
    except (OSError, ValueError):
        return False


with concurrent.futures.ThreadPoolExecutor() as pool:
    answers = dict(zip(INVENTORIES, pool.map(reachable, INVENTORIES.values()), strict=True))
intersphinx_mapping = {name: (INVENTORIES[name], None) for name, answered in answers.items() if answered}
