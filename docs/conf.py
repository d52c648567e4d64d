"""Configuration of the site. `cargo xtask docs` builds it."""

import re
import sys
from pathlib import Path

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path.insert(0, str(DOCS / "site"))

project = "Ultramarine"
author = "The Ultramarine developers"
project_copyright = author
_manifest = (ROOT / "Cargo.toml").read_text()
version = release = re.search(r'^version = "(.*)"', _manifest, re.MULTILINE)[1]
REPOSITORY = re.search(r'^repository = "(.*)"', _manifest, re.MULTILINE)[1]

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "functions",
    "repository_links",
]
source_suffix = {".md": "markdown"}
exclude_patterns = ["site"]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

# Docstrings quote names as Markdown does: a name that is documented here becomes a link, another stays code.
default_role = "py:obj"
autosummary_generate = False
autodoc_typehints = "none"
autodoc_member_order = "alphabetical"
napoleon_use_rtype = False
napoleon_preprocess_types = False

html_theme = "pydata_sphinx_theme"
html_title = f"Ultramarine {version}"
html_static_path = ["site/static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "github_url": REPOSITORY,
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "navigation_depth": 2,
    "show_nav_level": 1,
    "show_toc_level": 1,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "friendly",
    "pygments_dark_style": "github-dark",
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# A block of code names its file behind the language, and a word of a docstring may be the name of several attributes.
suppress_warnings = ["misc.highlighting_failure", "ref.python"]


def without_hidden_lines(app, docname, source) -> None:
    """Leaves out the lines of Rust that rustdoc hides: they begin with a number sign."""
    block = re.compile(r"^```rust.*?^```$", re.MULTILINE | re.DOTALL)
    source[0] = block.sub(lambda m: re.sub(r"^# .*\n|^#\n", "", m[0], flags=re.M), source[0])


def setup(app) -> dict[str, object]:
    """Passes the address of the repository to the extensions."""
    app.add_config_value("repository", REPOSITORY, "env")
    app.connect("source-read", without_hidden_lines)
    return {"parallel_read_safe": True}
