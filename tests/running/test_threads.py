"""How a batch is cut for threads."""

import inspect

import jax
import jax.numpy as jnp
import pytest

import mime
from mime.running.threads import cut_batch, on_threads


@pytest.mark.parametrize("size", [1, 2, 5, 64, 129, 1000])
@pytest.mark.parametrize("threads", [1, 2, 3, 4])
def test_cuts_are_equal_and_cover_every_member_once(size, threads):
    cuts = cut_batch(size, threads, smallest=1)
    assert len({cut.stop - cut.start for cut in cuts}) == 1
    members = [m for cut in cuts for m in range(cut.start, cut.stop)[cut.surplus :]]
    assert members == list(range(size))


def test_no_thread_is_started_for_fewer_members_than_it_is_worth():
    assert len(cut_batch(100, None, smallest=64)) == 1


def test_threads_compute_in_the_callers_precision():
    for double in (True, False):
        with jax.enable_x64(double):
            found = on_threads(lambda x: jnp.sin(x).dtype, [1.0, 2.0, 3.0])
        assert set(found) == {jnp.dtype("float64" if double else "float32")}


def test_no_public_method_hides_its_arguments():
    for name in mime.__all__:
        value = getattr(mime, name)
        if isinstance(value, type) and not issubclass(value, mime.Node | Exception | Warning):
            for label, function in inspect.getmembers(value, inspect.isfunction):
                method = getattr(value, label)
                if label.startswith("_") or not function.__module__.startswith("mime."):
                    continue
                kinds = [p.kind for p in inspect.signature(method).parameters.values()]
                assert inspect.Parameter.VAR_KEYWORD not in kinds, f"{name}.{label}"
                assert inspect.getdoc(method), f"{name}.{label}"
