"""Sphinx configuration; `make docs` builds the pages into docs/_build/html, and a warning is an error."""

import sys
from pathlib import Path

import plackett

sys.path.insert(0, str(Path(__file__).parent))  # mathml.py

project = "plackett"
author = "The plackett developers"
copyright = "The plackett developers, BSD-3"
release = version = plackett.__version__

extensions = [
    "mathml",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "coming/numbers", *(f"auto_examples/**.{ending}" for ending in ("ipynb", "py", "json"))]
suppress_warnings = ["config.cache"]
templates_path = ["_templates"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "plackett"
html_static_path = ["_static"]
html_css_files = ["plackett.css"]
html_show_sourcelink = False
html_sidebars = {"index": [], "start": [], "guide": [], "behind": [], "auto_examples/index": []}
html_theme_options = {
    "navbar_align": "left",
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "header_links_before_dropdown": 6,
}

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": "/plot_",
    "within_subsection_order": "FileNameSortKey",
    "remove_config_comments": True,
    "show_memory": False,
    "download_all_examples": False,
    "backreferences_dir": None,
    "plot_gallery": "True",
    "capture_repr": (),
    "abort_on_example_error": True,
}
