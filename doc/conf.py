"""The documentation site: ``python -m sphinx -W -b html doc doc/_build/html``.

The pages are Markdown that reads well on a code host, too. What the site needs beside it stands in
the folder ``_site``, a module for each concern.
"""

import os
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
os.environ.setdefault("MPLBACKEND", "Agg")
for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

import skpref  # noqa: E402
from _site import gallery  # noqa: E402

project = "skpref"
author = "the skpref developers"
copyright = "the skpref developers"
version = release = skpref.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "_site.gallery",
    "_site.links",
    "_site.reference",
    "_site.formulas",
]
exclude_patterns = ["_build", "_site"]
default_role = "py:obj"  # `name` in docstrings links to its page, where it has one
suppress_warnings = ["config.cache"]  # the gallery's settings hold functions

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 4  # as code hosts make them
myst_links_external_new_tab = False

numpydoc_show_class_members = False  # pages of classes list them by autodoc
autodoc_typehints = "none"  # docstrings say it in words
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
autosummary_generate = False  # _site.reference writes the pages

sphinx_gallery_conf = gallery.settings(HERE)
# Examples warn of nothing; the gallery's own machinery may, of what it runs in.
warnings.filterwarnings("ignore", message=".*FigureCanvasAgg is non-interactive.*")

html_theme = "pydata_sphinx_theme"
html_title = f"skpref {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_use_index = False  # the API page lists every name, and the search finds the rest
html_math_renderer = "mathml"
html_theme_options = {
    "logo": {"text": f"skpref {release}"},
    "header_links_before_dropdown": 7,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": []}
