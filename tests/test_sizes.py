"""What `make test` leaves to `make soak`: the cases that a mark names run, a wrong name is told."""

from types import SimpleNamespace

import pytest

import sizes


def item(test, case=None, **marks):
    """As pytest makes one: a test, its case, and its marks."""
    found = {name: SimpleNamespace(args=args) for name, args in marks.items()}
    return SimpleNamespace(
        nodeid=f"{test}[{case}]" if case else test,
        callspec=SimpleNamespace(id=case),
        get_closest_marker=found.get,
    )


ITEMS = [
    item("test_a"),
    *(item("test_b", robot, small=("panda",)) for robot in ("ur5", "panda")),
    item("test_c", soak=("the same as test_a in single precision",)),
]


@pytest.mark.parametrize("full", [False, True])
def test_the_small_part_runs_and_all_in_a_soak(full, monkeypatch):
    monkeypatch.setattr(sizes, "FULL", full)
    run, left = sizes.of_today(ITEMS)
    assert [one.nodeid for one in left] == ([] if full else ["test_b[ur5]", "test_c"])
    assert sorted(map(id, run + left)) == sorted(map(id, ITEMS))
    assert sizes.sized(1000, small=4) == (1000 if full else 4)


def test_a_case_that_is_not_there_is_refused():
    sizes.refuse_unknown_cases(ITEMS)
    wrong = item("test_d", "panda", small=("pandas",))
    with pytest.raises(pytest.UsageError, match=r"not there: {'test_d': {'pandas'}}"):
        sizes.refuse_unknown_cases([*ITEMS, wrong])
