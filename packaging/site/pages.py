"""Prepares the pages of the repository for mkdocs: pages.py ROOT BINARY PAGES.

docs/ becomes PAGES/en, docs/zh becomes PAGES/zh, README.md and README.zh.md their first pages. The page of commands and flags is BINARY's
own help. Links are rewritten to the new place of their targets; a link to a file that is not a page (a source, a manifest) leads to
a copy of the file. A link whose text is a page's file name gets the page's title.
"""

import posixpath
import re
import shutil
import subprocess
import sys
from pathlib import Path

LINK = re.compile(r"(\]\()([^)\s#]+)")
NAMED = re.compile(r"\[[\w-]+\.md\](?=\(([^)\s#]+)[)#])")
FENCE = re.compile(r"(?sm)^```.*?^```")
# The pages of the site that are outside docs/, and the first page of each language.
PROJECT = ["CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"]
FIRST = {"en": "README.md", "zh": "README.zh.md"}


def places(root, language):
    """Returns where each page of a language goes, by its path in the repository."""
    folder = "docs" if language == "en" else "docs/zh"
    at = {FIRST[language]: "index.md"}
    for page in sorted((root / folder).rglob("*.md")):
        rel = page.relative_to(root / folder).as_posix()
        if not rel.startswith("zh/"):
            at[folder + "/" + rel] = rel
    for name in PROJECT:
        at[name] = name
    return at


def rewrite(text, page, at, root, out, languages):
    """Returns the page's text with links for its place in the site. Code is unchanged."""

    def link(match):
        to = match.group(2)
        if "://" in to or to.startswith("mailto:"):
            return match.group(0)
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page), to))
        here = posixpath.dirname(at[page])
        if target in at:
            return match.group(1) + posixpath.relpath(at[target], here or ".")
        for other, pages in languages.items():  # the same page in another language
            if target in pages:
                return match.group(1) + "/" + ("" if other == "en" else other + "/") + pages[target].removesuffix("index.md").removesuffix(".md")
        source = root / target
        if not source.exists():
            raise SystemExit(f"{page}: {to} leads nowhere")
        if source.is_dir():
            files = [f for f in sorted(source.iterdir()) if f.is_file()]
            return match.group(1) + posixpath.relpath(copy(files[0], root, out), here or ".")
        return match.group(1) + posixpath.relpath(copy(source, root, out), here or ".")

    def title(match):
        target = root / posixpath.normpath(posixpath.join(posixpath.dirname(page), match.group(1)))
        return "[" + target.read_text().split("\n", 1)[0].removeprefix("# ") + "]"

    parts, end = [], 0
    for fence in FENCE.finditer(text):
        parts += [LINK.sub(link, NAMED.sub(title, text[end : fence.start()])), fence.group(0)]
        end = fence.end()
    return "".join(parts) + LINK.sub(link, NAMED.sub(title, text[end:]))


def copy(source, root, out):
    """Copies a file that pages link to as text, which browsers display, and returns its path in the site's pages."""
    name = "files/" + source.relative_to(root).as_posix()
    if not name.endswith((".txt", ".csv", ".json", ".yaml", ".png", ".svg")):
        name += ".txt"
    (out / name).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, out / name)
    return name


def commands(binary):
    """Returns the page of commands and flags from the program's help."""
    text = subprocess.run([binary, "man", "--markdown"], check=True, capture_output=True, text=True).stdout
    text = re.sub(r"(?m)^(#+) ", r"#\1 ", text)
    return "# Commands and flags\n\nMade from the program. `tsimport COMMAND --help` prints the same by groups.\n\n" + text.replace("<", "&lt;")


def main(root, binary, pages):
    root, pages = Path(root), Path(pages)
    shutil.rmtree(pages, ignore_errors=True)
    languages = {language: places(root, language) for language in FIRST if (root / FIRST[language]).exists()}
    for language, at in languages.items():
        out = pages / language
        others = {other: p for other, p in languages.items() if other != language}
        for page, place in at.items():
            to = out / place
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_text(rewrite((root / page).read_text(), page, at, root, out, others))
        (out / "commands.md").write_text(commands(binary))
        shutil.copyfile(Path(__file__).with_name("site.css"), out / "site.css")
        for picture in sorted((root / "docs" / "pictures").glob("*.*")):
            (out / "pictures").mkdir(exist_ok=True)
            shutil.copyfile(picture, out / "pictures" / picture.name)
    print(sum(len(at) + 1 for at in languages.values()), "pages in", len(languages), "languages")


if __name__ == "__main__":
    main(*sys.argv[1:])
