"""Random programs of loops, branches, indices and arithmetic: native code has XLA's bits.

All numbers are small integers, so that every sum and product is exact. Two programs in the suite,
2,000 by `make soak`.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from native_kernels import natively, same_bits
from sizes import sized

SHAPES = ((), (), (3,), (2, 3), (20,), (100,))
MEMBERS = 5


class Writer:
    """Writes a program with a generator of its own: each trace of a body writes the same."""

    def __init__(self, seed, depth):
        self.rng, self.depth = np.random.default_rng(seed), depth

    def pick(self, values, shape=None):
        fitting = [x for x in values if shape is None or x.shape == shape]
        return fitting[self.rng.integers(len(fitting))]

    def place(self, values, size):
        """An index: mostly known only when the program runs."""
        if self.rng.integers(5) == 0:
            return int(self.rng.integers(size))
        return self.pick(values, ()).astype(int) % size

    def seed(self):
        return int(self.rng.integers(2**32))

    def block(self, values):
        """The values, and some made of them."""
        values = list(values)
        kinds = [self.arithmetic, self.arithmetic, self.choice, self.read, self.write, self.moved]
        kinds += [self.joined, self.slices, self.truths]
        if self.depth:
            kinds += [self.branch, self.loop, self.loop, self.passes, self.called]
        for _ in range(self.rng.integers(3, 7)):
            for new in kinds[self.rng.integers(len(kinds))](values):
                values.append(jnp.clip(new.astype(float), -4.0, 5.0))
        return values

    def arithmetic(self, values):
        x = self.pick(values)
        y = self.pick(values, x.shape if self.rng.integers(2) else ())
        functions = (jnp.add, jnp.subtract, jnp.multiply, jnp.maximum, jnp.minimum)
        yield functions[self.rng.integers(5)](x, jnp.broadcast_to(y, x.shape))

    def choice(self, values):
        x = self.pick(values)
        y = self.pick(values, x.shape)
        yield jnp.where(self.pick(values, ()) > 0, x, y)

    def truths(self, values):
        x = self.pick(values)
        yield ((x > 1) & ~(x > self.pick(values, ()))).astype(int) - jnp.sign(x).astype(int)

    def read(self, values):
        flat = self.pick(values).reshape(-1)
        yield flat[self.place(values, flat.size)]

    def write(self, values):
        x = self.pick(values)
        at = self.place(values, x.size)
        flat, new = x.reshape(-1), self.pick(values, ())
        yield (flat.at[at].set(new) if self.rng.integers(2) else flat.at[at].add(new)).reshape(
            x.shape
        )

    def slices(self, values):
        x = self.pick(values).reshape(-1)
        size = int(self.rng.integers(1, x.size + 1))
        part = lax.dynamic_slice(x, (self.place(values, x.size + 3),), (size,))
        yield lax.dynamic_update_slice(x, part, (self.place(values, x.size),))

    def moved(self, values):
        x = self.pick(values)
        shape = SHAPES[self.rng.integers(len(SHAPES))]
        joined = jnp.concatenate([x.reshape(-1)[::-1], self.pick(values).reshape(-1)])
        yield jnp.resize(joined, shape)

    def joined(self, values):
        x = self.pick(values).reshape(-1)
        kind = self.rng.integers(4)
        yield (jnp.sum(x), lax.cumsum(x)[:3].sum(), jnp.max(x), jnp.argmax(x))[kind]

    def inner(self, seed, carry, more=()):
        """A body: what a carry becomes, and a scalar beside it."""
        made = Writer(seed, self.depth - 1).block([*carry, *more, jnp.asarray(1.0)])
        take = Writer(seed + 1, 0)
        return tuple(take.pick(made[::-1], x.shape) for x in carry), take.pick(made, ())

    def carry(self, values):
        return tuple(self.pick(values) for _ in range(self.rng.integers(1, 4)))

    def branch(self, values):
        seeds = [self.seed() for _ in range(self.rng.integers(2, 4))]
        cases = [lambda *c, s=s: self.inner(s, c) for s in seeds]
        carry, one = lax.switch(self.place(values, 4) - 1, cases, *self.carry(values))
        yield from (*carry, one)

    def loop(self, values):
        seed, length = self.seed(), int(self.rng.choice([1, 2, 5, 60]))
        rows = jnp.resize(self.pick(values), (length, 2))
        outer = self.pick(values)

        def body(carry, row):
            return self.inner(seed, carry, (row[0], outer))

        carry, ys = lax.scan(
            body, self.carry(values), rows, reverse=bool(self.rng.integers(2)), length=length
        )
        yield from (*carry, ys[-1], ys[0])

    def passes(self, values):
        seed, most = self.seed(), self.place(values, 4)

        def body(c):
            return c[0] + 1, *self.inner(seed, c[1:])[0]

        yield from lax.while_loop(lambda c: c[0] < most, body, (0, *self.carry(values)))[1:]

    def called(self, values):
        seed = self.seed()
        carry, one = jax.jit(lambda *c: self.inner(seed, c))(*self.carry(values))
        yield from (*carry, one)


@pytest.mark.parametrize("seed", sized(range(2000), small=(1, 2)))
def test_a_random_program_has_the_bits_of_xla(seed):
    def program(*args):
        return Writer(seed, 2).block(args)[len(args) :]

    rng = np.random.default_rng(seed)
    shared = [False, *(rng.integers(3, size=len(SHAPES) - 1) == 0).tolist()]
    args = [
        rng.integers(-4, 5, shape if s else (MEMBERS, *shape)).astype(float)
        for shape, s in zip(SHAPES, shared, strict=True)
    ]
    compiled = jax.jit(program)
    mine = natively(program, *args, shared=shared, singles=1)
    for k in range(MEMBERS):
        own = [x if s else x[k] for x, s in zip(args, shared, strict=True)]
        for j, (found, wanted) in enumerate(zip(mine, compiled(*own), strict=True)):
            assert same_bits(found[k] + 0, np.asarray(wanted) + 0), (seed, j, k, found[k], wanted)
