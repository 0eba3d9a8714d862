"""Signatures that tell what they take."""

import inspect

import mime

NAMES_OF_USERS = {"KinematicTree.lock"}
"""`tree.lock(shoulder=0.5)`: the keywords are the names of joints."""


def test_no_public_method_hides_its_arguments():
    for name in mime.__all__:
        value = getattr(mime, name)
        if isinstance(value, type) and not issubclass(value, mime.Node | Exception | Warning):
            for label, function in inspect.getmembers(value, inspect.isfunction):
                method = getattr(value, label)
                if label.startswith("_") or not function.__module__.startswith("mime."):
                    continue
                kinds = [p.kind for p in inspect.signature(method).parameters.values()]
                if f"{name}.{label}" not in NAMES_OF_USERS:
                    assert inspect.Parameter.VAR_KEYWORD not in kinds, f"{name}.{label}"
                assert inspect.getdoc(method), f"{name}.{label}"
