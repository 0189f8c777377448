"""The report on a study: one HTML page that works offline.

``write`` makes it of a directory that ``jaxbandit run`` left, or of a dataset. Every part of the page is a ``Panel``,
and further ones can be added: ``write(directory, panels=[Panel("Sensitivity", figure=figure)])``.
"""

from jaxbandit.report.page import write as write
from jaxbandit.report.panel import Panel as Panel
