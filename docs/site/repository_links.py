"""Links from pages to files outside of docs/.

A page links a file of the repository by a relative path, as GitHub shows it. On the site that file is not a page, so
the link becomes one to the repository.
"""

import re
from pathlib import Path

OUTSIDE = re.compile(r"\]\((\.\./[^)\s]+)\)")


def repository_links(app, name: str, source: list[str]) -> None:
    """Replaces relative links that leave docs/ by links to the repository."""
    folder = Path(app.env.doc2path(name)).parent

    def link(match: re.Match[str]) -> str:
        path, hash_, anchor = match[1].partition("#")
        target = (folder / path).resolve()
        root = Path(app.srcdir).resolve().parent
        if target.is_relative_to(root / "docs"):
            return match[0]
        kind = "tree" if target.is_dir() else "blob"
        address = f"{app.config.repository}/{kind}/main/{target.relative_to(root).as_posix()}"
        return f"]({address}{hash_}{anchor})"

    source[0] = OUTSIDE.sub(link, source[0])


def setup(app) -> dict[str, bool]:
    app.connect("source-read", repository_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
