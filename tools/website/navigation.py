"""The navigation of the site: an entry with a * stands for all pages of that pattern."""

from collections.abc import Iterable, Iterator
from fnmatch import fnmatch


class NavigationError(ValueError):
    """Pages that the navigation names and nobody wrote, or the other way round."""


def expanded(nav: list, pages: Iterable[str]) -> list:
    """`["a.md", {"Nodes": "nodes/*.md"}]` -> `["a.md", {"Nodes": ["nodes/x.md", ...]}]`

    An entry without any page is left out; every page stands in it once, and none that is missing.
    """
    pages = sorted(pages)
    found = _expanded(nav, pages)
    listed = list(_leaves(found))
    wrong = [f"{page} is not in the nav" for page in pages if page not in listed]
    wrong += [f"the nav has {page}, which does not exist" for page in listed if page not in pages]
    wrong += [f"the nav has {page} twice" for page in set(listed) if listed.count(page) > 1]
    if wrong:
        raise NavigationError(f"docs/site.yml: {'; '.join(wrong)}")
    return found


def _expanded(nav: list, pages: list[str]) -> list:
    found: list = []
    for entry in nav:
        if isinstance(entry, str):
            found += _matching(entry, pages)
            continue
        ((title, inside),) = entry.items()
        if isinstance(inside, str) and "*" not in inside:
            found.append(entry)
        elif inside := _expanded([inside] if isinstance(inside, str) else inside, pages):
            found.append({title: inside})
    return found


def _matching(pattern: str, pages: list[str]) -> list[str]:
    if "*" not in pattern:
        return [pattern]
    matching = [page for page in pages if fnmatch(page, pattern)]
    return sorted(matching, key=lambda page: (not page.endswith("/index.md"), page))


def _leaves(nav: list) -> Iterator[str]:
    for entry in nav:
        if isinstance(entry, str):
            yield entry
        else:
            for inside in entry.values():
                yield from [inside] if isinstance(inside, str) else _leaves(inside)
