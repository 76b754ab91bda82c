"""How the documentation site is made: ``make docs``."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "tests"), str(HERE.parent / "src")]
os.environ["PYTHONPATH"] = str(HERE.parent / "src")
os.environ["JUPYTER_PLATFORM_DIRS"] = "1"

import matplotlib  # noqa: E402

from matchbound import __version__  # noqa: E402

shutil.rmtree(HERE / "reference" / "names", ignore_errors=True)  # pages of names that are gone would stay
matplotlib.use("Agg")  # here only: in notebooks, pictures are shown inline
os.environ.pop("MPLBACKEND", None)

project = "matchbound"
author = "The matchbound developers"
copyright = f"2026, {author}"
version = release = __version__
language = "en"

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_nb",
    "mathml",
    "pictures",
    "live_blocks",
    "study_tables",
    "cli_reference",
]
templates_path = ["_templates"]
autosummary_generate = True
autosummary_ignore_module_all = False
exclude_patterns = ["_made/*.md", "**.ipynb_checkpoints"]
nitpicky = False

myst_enable_extensions = ["dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_merge_streams = True

autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
html_math_renderer = "mathml"

html_theme = "pydata_sphinx_theme"
html_title = "matchbound"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "matchbound"},
    "show_prev_next": True,
    "show_nav_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 4,
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "tango",
}
html_sidebars = {"index": [], "gallery": [], "cheat-sheet": [], "which-number": [], "notebooks/*": []}
