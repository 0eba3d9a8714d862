"""Every node of MIME, found without asking the registry that is tested with it."""

import importlib
import inspect
import pkgutil

import mime
from mime import Node


def every_node_type():
    """The concrete subclasses of `Node` that the package defines, by any module.

    Those of `mime.verification` are faulty on purpose: each shows that a benchmark can fail.
    """
    for module in pkgutil.walk_packages(mime.__path__, "mime."):
        importlib.import_module(module.name)
    found = {
        cls
        for cls in _subclasses(Node)
        if cls.__module__.startswith("mime.")
        and not cls.__module__.startswith("mime.verification")
        and not inspect.isabstract(cls)
    }
    return sorted(found, key=lambda cls: cls.__name__)


def _subclasses(cls):
    for below in cls.__subclasses__():
        yield below
        yield from _subclasses(below)
