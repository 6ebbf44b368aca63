"""Hook of MkDocs: orders the pages of the site and leads links out of docs/ to the repository."""

import pathlib
import posixpath
import re

FOLDERS = (("Tutorials", "tutorial"), ("How to", "how-to"), ("Reference", "reference"), ("Explanation", "explanation"))
TUTORIALS = ("laptop.md", "team-machine.md", "slurm-site.md", "kubernetes-cluster.md")
ITEM = re.compile(r"([-*]|\d+\.) ")
LINK = re.compile(r"\]\(([^)\s:#]+)(#[^)\s]*)?\)")


def title_of(page: pathlib.Path) -> str:
    """Returns the first heading of a page."""
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            return line[2:]
    return page.stem


def on_config(config):
    docs = pathlib.Path(config["docs_dir"])
    nav = [{"Home": "README.md"}]
    for title, folder in FOLDERS:
        pages = sorted((docs / folder).rglob("*.md"), key=lambda p: (p.parent != docs / folder, p.name in TUTORIALS and TUTORIALS.index(p.name), title_of(p)))
        nav.append({title: [{title_of(p): p.relative_to(docs).as_posix()} for p in pages]})
    nav.append({"Help": [{"Questions and answers": "faq.md"}, {"Troubleshooting": "troubleshooting.md"}]})
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
