"""The site: ``python -m sphinx -W docs build/site`` writes it (extra ``docs``); any warning is an error."""

import pathlib
import sys

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE / "_ext")]  # this checkout, not an installed copy

from jaxbandit.version import __version__

project = "jaxbandit"
author = "the jaxbandit authors"
release = version = __version__
html_title = f"jaxbandit {__version__}"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton", "mathml", "pages"]
exclude_patterns = ["_ext"]
nitpicky = True  # a reference that leads nowhere is an error
smartquotes_action = "D"  # dashes alone: quotes stay what one types

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

add_module_names = False
autodoc_preserve_defaults = True  # a default reads as it was written
autodoc_typehints = "none"  # the docstrings say what is taken; signatures stay on one line
autodoc_member_order = "bysource"
napoleon_custom_sections = [("Attributes", "params_style")]
toc_object_entries_show_parents = "hide"

html_math_renderer = "mathml"
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_show_copyright = False
html_copy_source = False
