"""The site, as plain Markdown that any builder of such sites takes: MkDocs, Zensical.

    docs/*.md, the nodes' declarations, docstrings, bundled scenarios
        -> build/site/docs/*.md and build/site/mkdocs.yml     `source`, by the modules beside it
        -> site/*.html                                        the builder
        -> what is wrong with them                            `check`

All that is MIME's own happens before the builder and after it, so that the builder can change:
mkdocs-material ends in May 2027, and its authors go on with Zensical, which reads the same files.
"""
