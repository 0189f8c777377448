"""The report on a study: one HTML page that works offline.

``write`` makes the page from a directory that ``jaxbandit run`` wrote, or from a dataset. Every part of the page is a
``Panel``, and a caller can add further ones: ``write(directory, panels=[Panel("Sensitivity", figure=figure)])``.
"""

from jaxbandit.report.page import write
from jaxbandit.report.panel import Panel

__all__ = ["Panel", "write"]
