"""Derive the constants of `mime.native.elementary`, and write its `coefficients.py`.

    python tools/elementary_coefficients.py && ruff format src

Every polynomial interpolates its function at the Chebyshev points of its interval, in 60 digits:
the error is then within a small factor of the smallest one possible. Its degree is the least that
keeps the error below 1/16 of a unit in the last place of the function's value.
"""

from collections.abc import Callable, Iterable
from decimal import Decimal, getcontext
from fractions import Fraction
from math import factorial
from pathlib import Path
from statistics import NormalDist

FILE = Path(__file__).parent.parent / "src/mime/native/elementary/coefficients.py"
DIGITS = {64: 53, 32: 24}
"""Binary digits of a number of 64 and of 32 bits."""
TWO_OVER_PI_BITS = 1280
"""Enough for the largest number: 1024 digits, then 254 for what is below 4."""
getcontext().prec = 60


def series(term: Callable[[int], Fraction]) -> Callable[[Decimal], Decimal]:
    """x -> sum of term(k) x^k, until a term no longer counts."""

    def value(x: Decimal) -> Decimal:
        total, power = Decimal(0), Decimal(1)
        for k in range(400):
            fraction = term(k)
            added = power * fraction.numerator / fraction.denominator
            total += added
            power *= x
            if abs(added) < Decimal("1e-50"):
                break
        return total

    return value


def arctangent(x: Decimal) -> Decimal:
    """For small x."""
    return x * series(lambda k: Fraction((-1) ** k, 2 * k + 1))(x * x)


PI = 16 * arctangent(Decimal(1) / 5) - 4 * arctangent(Decimal(1) / 239)
ROOT_PI = PI.sqrt()


def arcsine_term(k: int) -> Fraction:
    """Of (asin(x) / x - 1) / x², in x²."""
    k += 1
    return Fraction(factorial(2 * k), 4**k * factorial(k) ** 2 * (2 * k + 1))


def scaled_erfc(x: Decimal) -> Decimal:
    """e^(x²) erfc x: by the series of erf, whose terms have one sign, or by Laplace's fraction."""
    if x < 2:
        total = term = x
        k = 0
        while term > Decimal("1e-55"):
            k += 1
            term *= 2 * x * x / (2 * k + 1)
            total += term
        return (x * x).exp() - 2 / ROOT_PI * total
    fraction = x
    for k in range(400, 0, -1):
        fraction = x + Decimal(k) / 2 / fraction
    return 1 / (fraction * ROOT_PI)


def erfc_of_t(t: Decimal) -> Decimal:
    """(1 + 2 x) e^(x²) erfc x,  t = (x - 3) / (x + 3)"""
    x = 3 * (1 + t) / (1 - t)
    return (1 + 2 * x) * scaled_erfc(x)


def inverse_erf_of_w(w: Decimal) -> Decimal:
    """y / x where erf y = x,  w = -log(1 - x²): by Newton, from a start of 15 digits"""
    if w == 0:
        return ROOT_PI / 2
    e = (-w).exp()
    x = (1 - e).sqrt()
    y = Decimal(-NormalDist().inv_cdf(float(e / (1 + x)) / 2) / 2**0.5)
    for _ in range(3):
        y += (scaled_erfc(y) - e / (1 + x) * (y * y).exp()) * ROOT_PI / 2
    return y / x


cosine_series = series(lambda k: Fraction((-1) ** k, factorial(2 * k)))
erf_series = series(lambda k: Fraction((-1) ** k, factorial(k) * (2 * k + 1)))

POLYNOMIALS: dict[str, tuple[Callable[[Decimal], Decimal], str, str, str]] = {
    # name: (function, interval, largest size beside the function that it completes)
    # sin r = r + r³ S(r²),  cos r = 1 - r²/2 + r⁴ C(r²);  |r| <= pi/4, and what rounding adds
    "SIN": (series(lambda k: Fraction((-1) ** (k + 1), factorial(2 * k + 3))), "0", "0.64", "0.64"),
    "COS": (series(lambda k: Fraction((-1) ** k, factorial(2 * k + 4))), "0", "0.64", "0.5"),
    # exp r = 1 + r + r²/2 + r³ P(r);  |r| <= ln(2) / 2
    "EXP": (series(lambda k: Fraction(1, factorial(k + 3))), "-0.35", "0.35", "0.13"),
    # log(1 + f) = f - h + s (h + w Q(w)),  s = f / (2 + f),  w = s²,  h = f² / 2
    "LOG": (series(lambda k: Fraction(2, 2 * k + 3)), "0", "0.0295", "0.03"),
    # the same for pow, with more digits: log(1 + f) = 2 s (1 + w/3 + w²/5 + w³ T(w))
    "LOG_TAIL": (series(lambda k: Fraction(1, 2 * k + 7)), "0", "0.0295", "0.21"),
    # atan q = q + q³ A(q²);  q <= tan(pi/8)
    "ATAN": (series(lambda k: Fraction((-1) ** (k + 1), 2 * k + 3)), "0", "0.1717", "0.18"),
    # asin s = s + s³ A(s²);  s <= 1/2
    "ASIN": (series(arcsine_term), "0", "0.25", "0.25"),
    # cbrt m, to half the digits: Newton's step brings the other half
    "CBRT": (lambda x: x ** (Decimal(1) / 3), "0.7071", "1.4143", "half"),
    # erf x = x + x E(x²);  x <= 0.65
    "ERF": (lambda z: 2 / ROOT_PI * erf_series(z) - 1, "0", "0.4226", "1"),
    # erfc x = e^(-x²) F(t) / (1 + 2 x);  0.65 <= x <= 28
    "ERFC": (erfc_of_t, "-0.644", "0.807", "1"),
    # erf_inv x = x V(w - 3.125) for w = -log(1 - x²) <= 6.25, and x U(sqrt(w) - 4.3) beyond,
    # to half the digits: Newton's step brings the other half
    "ERF_INV": (lambda v: inverse_erf_of_w(v + Decimal("3.125")), "-3.125", "3.125", "half"),
    "ERF_INV_FAR": (lambda v: inverse_erf_of_w((v + Decimal("4.3")) ** 2), "-1.81", "1.75", "half"),
}


IN_TWO_PARTS = ("ERFC",)
"""Polynomials whose constant coefficient is given with twice the digits too."""


def chebyshev_points(count: int, low: Decimal, high: Decimal) -> list[Decimal]:
    """Where a polynomial that interpolates errs least."""
    middle, half = (low + high) / 2, (high - low) / 2
    angles = ((2 * i + 1) * PI / (2 * count) for i in range(count))
    return [middle + half * cosine_series(angle * angle) for angle in angles]


def interpolation(points: list[Decimal], values: list[Decimal]) -> list[Decimal]:
    """Coefficients, lowest power first: Newton's divided differences, multiplied out."""
    differences = list(values)
    for order in range(1, len(points)):
        for i in range(len(points) - 1, order - 1, -1):
            step = points[i] - points[i - order]
            differences[i] = (differences[i] - differences[i - 1]) / step
    result = [differences[-1]]
    for point, difference in zip(points[-2::-1], differences[-2::-1], strict=True):
        shifted = [Decimal(0), *result]
        result = [a - point * b for a, b in zip(shifted, [*result, Decimal(0)], strict=True)]
        result[0] += difference
    return result


def horner(coefficients: Iterable[Decimal], x: Decimal) -> Decimal:
    """Value of a polynomial."""
    total = Decimal(0)
    for c in reversed(list(coefficients)):
        total = total * x + c
    return total


def polynomial(name: str, bits: int) -> list[Decimal]:
    """Coefficients of the shortest polynomial that is good enough for `bits`."""
    function, *interval, size = POLYNOMIALS[name]
    low, high = map(Decimal, interval)
    samples = [low + (high - low) * i / 200 for i in range(201)]
    exact = [function(x) for x in samples]
    if size == "half":
        allowed = Decimal(2) ** -(DIGITS[bits] // 2 + 4)
    else:
        allowed = Decimal(2) ** -(DIGITS[bits] + 4) / Decimal(size)
    for count in range(2, 40):
        points = chebyshev_points(count, low, high)
        result = interpolation(points, [function(x) for x in points])
        error = max(abs(horner(result, x) - y) for x, y in zip(samples, exact, strict=True))
        if error < allowed:
            return result
    raise ValueError(f"{name} needs more than 40 coefficients: choose a smaller interval")


def digits(x: Decimal, count: int) -> float:
    """`x` to `count` binary digits, to nearest."""
    exact = Fraction(x)
    power = exact.numerator.bit_length() - exact.denominator.bit_length() - count
    power += abs(exact) >= Fraction(2) ** (power + count)
    scaled = exact / Fraction(2) ** power
    return float(round(scaled) * Fraction(2) ** power)


def parts(x: Decimal, counts: Iterable[int]) -> list[float]:
    """Numbers with these counts of digits whose sum is `x`."""
    result = []
    for count in counts:
        result.append(digits(x, count))
        x -= Decimal(result[-1])
    return result


def constants(bits: int) -> dict[str, list[float]]:
    """All that the functions of numbers of `bits` need."""
    p = DIGITS[bits]
    exponent_digits = 11 if bits == 64 else 8
    ln2 = Decimal(2).ln()
    result = {
        "HALF_PI": parts(PI / 2, [p, p, p]),
        "QUARTER_PI": parts(PI / 4, [p - 3, p]),  # 1 to 4 times the first is exact
        "LN2": parts(ln2, [p - exponent_digits, p]),  # times an exponent, the first is exact
        "LN2_FULL": parts(ln2, [p, p]),
        "INVERSE_LN2": parts(1 / ln2, [p]),
        "ONE_THIRD": parts(Decimal(1) / 3, [p, p]),
        "ONE_FIFTH": parts(Decimal(1) / 5, [p, p]),
    }
    exact = {name: polynomial(name, bits) for name in POLYNOMIALS}
    result |= {f"{name}_0": parts(exact[name][0], [p, p]) for name in IN_TWO_PARTS}
    return result | {name: [digits(c, p) for c in exact[name]] for name in POLYNOMIALS}


def two_over_pi(bits: int) -> int:
    """2/pi times 2^bits, by Machin's formula in integers: pi/4 = 4 atan(1/5) - atan(1/239)."""
    one = 1 << (bits + 64)

    def atan_of_inverse(n: int) -> int:
        total, term, k = 0, one // n, 0
        while term:
            total += (-1) ** k * (term // (2 * k + 1))
            term //= n * n
            k += 1
        return total

    quarter = 4 * atan_of_inverse(5) - atan_of_inverse(239)
    return (one << bits) // (2 * quarter)


def text() -> str:
    """The file."""
    lines = [
        '"""Constants of the elementary functions, by bits of a number.',
        "",
        "Written by tools/elementary_coefficients.py, which says what each one is.",
        '"""',
        "",
    ]
    tables = {bits: constants(bits) for bits in DIGITS}
    for name in tables[64]:
        lines.append(f"{name} = {{")
        for bits, table in tables.items():
            values = table[name]
            single = len(values) == 1
            lines.append(f"    {bits}: {values[0] if single else tuple(values)},")
        lines.append("}")
    lines.append(f"TWO_OVER_PI_BITS = {TWO_OVER_PI_BITS}")
    digits = f"{two_over_pi(TWO_OVER_PI_BITS):X}"
    rows = [f'    "{digits[i : i + 80]}"' for i in range(0, len(digits), 80)]
    lines += ["TWO_OVER_PI = int(", *rows, "    , 16)"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
