"""How much of a long check runs: a stated small part in `make test`, all of it in `make soak`.

    COUNT = sized(1000, small=4)                    numbers: seeds, steps, members, targets
    @pytest.mark.small("panda", "talos")            of a parametrised test: the ids of these cases
    @pytest.mark.soak("the same in single precision as above in double")    a whole test: why

The small part is chosen, not drawn: what is mixed most (mimic joints, branches, stops) and what has
found faults. An algorithm, a node, a scenario and a kind of error keep their oracle in it.
`conftest.py` leaves the other cases out, by `of_today`.
"""

import os

import pytest

FULL = "MIME_SOAK" in os.environ


def sized(full, *, small):
    """`full` in `make soak`, else `small`."""
    return full if FULL else small


def of_today(items):
    """Tests in two lists: those that run, and those that `make soak` alone runs."""
    run, left = [], []
    for item in items:
        (run if FULL or _is_small(item) else left).append(item)
    return run, left


def _is_small(item):
    chosen = item.get_closest_marker("small")
    return item.get_closest_marker("soak") is None and (
        chosen is None or item.callspec.id in chosen.args
    )


def refuse_unknown_cases(items):
    """A case that `small` names and the test has not would be a test that nobody misses."""
    cases, named = {}, {}
    for item in items:
        if chosen := item.get_closest_marker("small"):
            test = item.nodeid.split("[")[0]
            cases.setdefault(test, set()).add(item.callspec.id)
            named[test] = set(chosen.args)
    wrong = {test: ids - cases[test] for test, ids in named.items() if ids - cases[test]}
    if wrong:
        raise pytest.UsageError(f"pytest.mark.small names cases that are not there: {wrong}")
