"""Hook of MkDocs: orders the pages of the site and leads links out of docs/ to the repository."""

import pathlib
import posixpath
import re

ITEM = re.compile(r"([-*]|\d+\.) ")
LISTED = re.compile(r"- \[([^\]]+)\]\(([^)\s:]+\.md)\)")
LINK = re.compile(r"\]\(([^)\s:#]+)(#[^)\s]*)?\)")


def title_of(page: pathlib.Path) -> str:
    """Returns the first heading of a page."""
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            return line[2:]
    return page.stem


def listed_pages(readme: str):
    """Returns the sections of docs/README.md with their pages, as MkDocs wants its navigation."""
    nav, part = [], []
    for line in readme.splitlines():
        if line.startswith("## "):
            part = []
            nav.append({line[3:]: part})
            pages = part
        elif line.startswith("### "):
            pages = []
            part.append({line[4:]: pages})
        elif match := LISTED.match(line):
            title, path = match.groups()
            if not path.startswith("../"):
                pages.append({title: path})
    return nav


def on_config(config):
    docs = pathlib.Path(config["docs_dir"])
    nav = [{"Home": "README.md"}] + listed_pages((docs / "README.md").read_text(encoding="utf-8"))
    for tab in nav:  # folders of which the list names the first page, or none
        for title, folder, name in (("Reference", "reference/cli", "Each command"), ("Explanation", "explanation/design", "Design notes")):
            if title in tab:
                tab[title].append({name: [{title_of(p): p.relative_to(docs).as_posix()} for p in sorted((docs / folder).glob("*.md"))]})
    config["nav"] = nav
    return config


def on_page_markdown(markdown, page, config, files):
    def lead(match):
        target, anchor = match.group(1), match.group(2) or ""
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page.file.src_uri), target))
        if path.startswith("docs/") and not target.endswith("/"):
            return match.group(0)
        return f"]({config['repo_url']}/blob/main/{path}{anchor})"

    return LINK.sub(lead, separate_lists(markdown))


def separate_lists(markdown: str) -> str:
    """Puts an empty line before each list that follows a line of text, as Python-Markdown wants."""
    out, fenced = [], False
    for line in markdown.split("\n"):
        fenced ^= line.startswith("```")
        before = out[-1] if out else ""
        if not fenced and ITEM.match(line) and before and not before.startswith(" ") and not ITEM.match(before):
            out.append("")
        out.append(line)
    return "\n".join(out)
