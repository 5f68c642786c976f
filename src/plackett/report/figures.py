"""Plots as inline SVG in the text colour of the page, light or dark, with a description for screen readers."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from plackett.output.html import text

if TYPE_CHECKING:
    from matplotlib.axes import Axes


INK = "#010203"  # placeholder of the page's text colour
WIDTHS = (4.4, 6.0, 8.0, 11.0)  # inches: the first with enough room next to the labels is used
NARROWEST = 1.5  # minimum width of the Axes in inches
PAD = 0.1  # fonts of the browser may be wider
SVG = "http://www.w3.org/2000/svg"
HREF = "{http://www.w3.org/1999/xlink}href"
LOOK: dict[str, Any] = {
    "font.size": 9,
    "svg.fonttype": "none",
    "axes.titlesize": 9,
    "legend.frameon": False,
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
    **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), "none"),
}


def figure(name: str, draw: Callable[[Axes], object], alt: str, caption: str, height: float = 3.4) -> str:
    """Figure drawn by `draw` on new Axes; `name` makes the ids of its elements unique in the page."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

    with matplotlib.rc_context(LOOK | {"svg.hashsalt": name}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")  # the browser has other fonts
        warnings.filterwarnings("ignore", "constrained_layout not applied")  # the figure then grows beyond its edge
        for width in WIDTHS:
            canvas = Figure(figsize=(width, height), layout="constrained")
            FigureCanvasSVG(canvas)
            ax = canvas.subplots()
            draw(ax)
            canvas.draw_without_rendering()
            if width * ax.get_position().width >= NARROWEST:
                break
        stream = io.StringIO()
        whole = Bbox.union([canvas.bbox_inches, canvas.get_tightbbox().padded(PAD)])  # labels may reach beyond
        none = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        canvas.savefig(stream, format="svg", bbox_inches=whole, metadata=none)
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", HREF[1 : HREF.index("}")])
    drawing = _inline(stream.getvalue(), name, alt)
    return f'<figure id="{name}">{drawing}<figcaption>{text(caption)}</figcaption></figure>'


def _inline(svg: str, name: str, alt: str) -> str:
    """SVG element with unique ids, without a fixed size, in the text colour of the page, with a description."""
    root = ElementTree.fromstring(svg)
    for part in root.iter():
        for key, value in part.attrib.items():
            if key in ("id", HREF):
                value = value[:1].replace("#", f"#{name}-") + value[1:] if key == HREF else f"{name}-{value}"
            part.set(
                key,
                value.replace("url(#", f"url(#{name}-").replace(INK, "currentColor").replace("#000000", "currentColor"),
            )
    for definitions in root.findall(f"{{{SVG}}}defs"):
        for rules in definitions.findall(f"{{{SVG}}}style"):
            definitions.remove(rules)  # they would apply to the whole page
    for size in ("width", "height"):
        del root.attrib[size]
    root.set("role", "img")
    root.set("aria-label", "".join(c if c.isprintable() else " " for c in alt))
    return ElementTree.tostring(root, encoding="unicode")
