"""Colours and lines: one look for each policy, and an ordered ramp for the points of a sweep.

Every colour has a contrast of at least 3:1 to a white page, or to the dark page of a report if that is asked for. The
basic colours are apart from each other for readers with deuteranopia or protanopia too.
"""

import itertools
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

COLOURS = ("#0057A0", "#BC3200", "#2A9D83", "#9C62BC", "#C07C00", "#4A96E8", "#000000", "#7A1245")
DARK_PAGE = "#15181C"
LIGHTER = {"#000000": "#F2F2F2", "#4A96E8": "#9CD0FF"}  # on a dark page; the second keeps away from the first blue
CONTRAST = 3.0  # the least contrast of a line to its page
LONG = (0, (9, 2, 2, 2, 2, 2))  # a long dash and two dots
LINES = ("-", "--", "-.", ":", LONG)  # one for each pass through the colours
HEAT = "cividis"  # monotone in grey, and the same for every kind of colour vision

# (colour, line) of the shipped policies: a policy looks the same on every figure.
POLICY_LOOKS = {
    "uniinf": (0, 0),
    "uniinf_variant": (0, 1),
    "uniinf_first_losses": (0, 2),
    "delayed": (0, 3),
    "doubling": (0, 4),
    "ada_hedge": (5, 3),
    "clipped_sgd_ucb": (2, 3),
    "exp3_plus_plus": (3, 3),
    "ftpl": (4, 2),
    "lb_inf_v": (4, 3),
    "htinf": (1, 0),
    "opt_htinf": (4, 0),
    "ada_tinf": (3, 0),
    "robust_ucb": (2, 0),
    "robust_moss": (7, 0),
    "ape2": (5, 0),
    "adar_ucb": (6, 0),
    "sao_ht": (1, 1),
    "omd_lb_ht": (1, 2),
    "tsallis_inf": (3, 1),
    "exp3": (3, 2),
    "mr_ucb": (5, 1),
    "mr_ape": (5, 2),
    "ucb1": (6, 1),
    "moss": (6, 2),
    "thompson": (4, 1),
    "uniform": (6, 3),
}

# Lightness of the first and the last colour of a ramp, in OKLab, on a white and on a dark page.
LIGHTNESS = {False: (0.36, 0.64), True: (0.93, 0.55)}  # the darkest is clear of black
TURN = 24.0  # degrees by which the hue of a ramp turns
_TO_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def look(n: int, dark: bool = False) -> dict[str, Any]:
    """Returns colour and line of curve ``n``, for a white or a dark page."""
    colour = COLOURS[n % len(COLOURS)]
    line = LINES[n // len(COLOURS) % len(LINES)]
    return {"color": on_dark(colour) if dark else colour, "linestyle": line}


def looks(labels: Iterable[Any], dark: bool = False) -> list[dict[str, Any]]:
    """Returns colour and line of every labelled curve.

    A shipped policy has a look of its own. The points of its sweep have its line and a ramp of colours around its own,
    in the order of the swept values.

    Args:
      labels: The labels of the curves, e.g. ``uniinf[initial_scale=4]``.
      dark: Whether the colours are for a dark page.

    Example:
      >>> [look["color"] for look in looks(["uniinf", "htinf"])]
      ['#0057A0', '#BC3200']
      >>> sweep = looks([f"uniinf[initial_scale={value}]" for value in (16, 1, 4)])
      >>> [contrast(look["color"], "#FFFFFF") > 4 for look in sweep]  # the least value is the darkest
      [False, True, True]
    """
    labels = [str(label) for label in labels]
    heads = [family(label) for label in labels]
    size = len(COLOURS)
    taken = {colour + size * line for colour, line in (POLICY_LOOKS[name] for name in heads if name in POLICY_LOOKS)}
    free = (n for n in itertools.count() if n % (size * len(LINES)) not in taken)
    found: list[dict[str, Any]] = [{}] * len(labels)
    for name in dict.fromkeys(heads):
        known = POLICY_LOOKS.get(name)
        base = look(next(free) if known is None else known[0] + size * known[1], dark)
        places = [n for n, other in enumerate(heads) if other == name]
        swept = [n for n in places if labels[n] != name] if len(places) > 1 else []
        for place in places:
            found[place] = base
        colours = ramp(base["color"], len(swept), dark=dark)
        for n, colour in zip(_in_order([labels[n] for n in swept]), colours, strict=True):
            found[swept[n]] = base | {"color": colour}
    return found


def family(label: Any) -> str:
    """Returns the name that a label starts with: ``uniinf`` of ``uniinf[initial_scale=4]``, none of ``scale=4``."""
    name = str(label).split("[")[0].split("#")[0]
    return "" if "=" in name else name


def _in_order(labels: list[str]) -> list[int]:
    """Orders the points of a sweep by their swept values, or by their places if they do not sweep the same numbers."""
    read = [re.findall(r"([^\[\],=\s]+)=([^,\]]+)", label) for label in labels]
    try:
        values = [tuple(float(value) for _, value in pairs) for pairs in read]
    except ValueError:
        return list(range(len(labels)))
    if len({tuple(name for name, _ in pairs) for pairs in read}) > 1:
        return list(range(len(labels)))
    return sorted(range(len(labels)), key=lambda n: values[n])


def ramp(colour: str, count: int, *, dark: bool = False) -> list[str]:
    """Returns colours that run from the page's ink towards the page, around the hue of a colour.

    Args:
      colour: The colour in the middle.
      count: The number of colours.
      dark: Whether they are for a dark page.
    """
    _, a, b = _lab(colour)
    chroma, hue = float(np.hypot(a, b)), float(np.arctan2(b, a))
    places, made = np.linspace(0, 1, count), []
    first, last = LIGHTNESS[dark]
    for place in places:
        angle = hue + np.deg2rad(TURN) * (0.5 - place)
        lab = np.array([first + (last - first) * place, chroma * np.cos(angle), chroma * np.sin(angle)])
        made.append(_from_lab(lab))
    return made


def on_dark(colour: str) -> str:
    """Lightens a colour until a dark page shows it well.

    Example:
      >>> on_dark("#2A9D83"), on_dark("#000000")
      ('#2A9D83', '#F2F2F2')
    """
    if colour in LIGHTER:
        return LIGHTER[colour]
    lab = _lab(colour)
    while contrast(colour, DARK_PAGE) < 1.5 * CONTRAST:
        lab = np.add(lab, [0.01, 0, 0])
        colour = _from_lab(lab)
    return colour


def contrast(colour: str, page: str) -> float:
    """Returns the contrast of two colours as accessibility guidelines define it, from 1 to 21.

    Example:
      >>> contrast("#000000", "#FFFFFF")
      21.0
    """
    one, other = (float(_linear(each) @ [0.2126, 0.7152, 0.0722]) + 0.05 for each in (colour, page))
    return round(max(one, other) / min(one, other), 6)


def mixed(colour: str, share: float) -> str:
    """Returns a tint: ``share`` of the colour on white paper."""
    channels = np.array([int(colour[n : n + 2], 16) for n in (1, 3, 5)])
    return "#" + "".join(f"{round(255 - share * (255 - value)):02X}" for value in channels)


def _linear(colour: str) -> np.ndarray:
    channels = np.array([int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)])
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def _lab(colour: str) -> np.ndarray:
    """Returns a colour in OKLab: its lightness, and two coordinates of its hue."""
    return _TO_LAB @ np.cbrt(_TO_CONES @ _linear(colour))


def _from_lab(lab: np.ndarray) -> str:
    linear = np.clip(np.linalg.solve(_TO_CONES, np.linalg.solve(_TO_LAB, lab) ** 3), 0, 1)
    channels = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return "#" + "".join(f"{round(255 * float(value)):02X}" for value in channels)


ON_DARK = {colour: on_dark(colour) for colour in COLOURS}  # the colours on a dark page
