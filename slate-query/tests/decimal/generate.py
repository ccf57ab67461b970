#!/usr/bin/env python3
"""Writes vectors.txt.gz: decimal128 operations with the results of libmpdec, the library behind Python's decimal module.

usage: ./generate.py > vectors.txt.gz

A line is an operation, its operands and its result. A decimal is NaN, Infinity, -Infinity, or its sign, coefficient and exponent: -125E-2.
"""

import decimal
import gzip
import random
import struct
import sys
from decimal import Decimal

IEEE = decimal.Context(prec=34, Emin=-6143, Emax=6144, clamp=1, rounding=decimal.ROUND_HALF_EVEN, traps=[])
EXACT = decimal.Context(prec=40000, Emin=-99999, Emax=99999, rounding=decimal.ROUND_HALF_EVEN, traps=[])
SPECIAL = ["NaN", "Infinity", "-Infinity", "0E0", "-0E0", "0E-6176", "0E6111", "0E-3", "-0E-3", "1E0", "-1E0", "1E-6176", "1E6111", "9E6111",
           "9" * 34 + "E0", "9" * 34 + "E6111", "-" + "9" * 34 + "E6111", "1" + "0" * 33 + "E0", "5E-1", "15E-1", "25E-1", "1E-6143",
           "9223372036854775807E0", "-9223372036854775808E0", "9223372036854775808E0", "92233720368547758075E-1"]
random.seed(128)


def operand():
    kind = random.random()
    if kind < 0.1:
        return Decimal(random.choice(SPECIAL))
    digits = random.choice([1, 2, 3, 7, 15, 17, 19, 33, 34, random.randint(1, 34)])
    coefficient = random.randint(0, 10 ** digits - 1)
    if random.random() < 0.2:
        coefficient = 10 ** digits - random.randint(1, 3)
    if random.random() < 0.2:
        zeros = random.randint(0, digits - 1)
        coefficient = coefficient // 10 ** zeros * 10 ** zeros
    near = random.random()
    if near < 0.6:
        exponent = random.randint(-40, 10)
    elif near < 0.8:
        exponent = random.randint(-6176, 6111)
    else:
        exponent = random.choice([-6176, -6170, -6143, -330, -310, 300, 6080, 6111]) + random.randint(0, 30)
    exponent = max(-6176, min(6111, exponent))
    return Decimal((random.randint(0, 1), tuple(map(int, str(coefficient))), exponent))


def near(a):
    """An operand at such a distance that rounding matters."""
    if not a.is_finite():
        return operand()
    sign, digits, exponent = operand().as_tuple()
    if not isinstance(exponent, int):
        return operand()
    return Decimal((sign, digits, max(-6176, min(6111, a.as_tuple().exponent + random.randint(-36, 36)))))


def show(value):
    if value.is_nan():
        return "NaN"
    sign, digits, exponent = value.as_tuple()
    if value.is_infinite():
        return "-Infinity" if sign else "Infinity"
    return ("-" if sign else "") + str(int("".join(map(str, digits)))) + "E" + str(exponent)


def line(*parts):
    print(*parts, file=out)


def double_bits(double):
    return "nan" if double != double else struct.pack(">d", double).hex()


def literal():
    """Text as a person or a program writes it, also with more digits than a decimal128 has."""
    digits = "".join(random.choice("0123456789") for _ in range(random.choice([1, 3, 20, 33, 34, 35, 36, 37, 38, 60])))
    if random.random() < 0.3:
        digits = digits[:34] + random.choice(["5", "50", "51", "49", "500000001", "4999999", "05"])
    point = random.randint(0, len(digits))
    text = random.choice(["", "-", "+"]) + digits[:point] + random.choice([".", ""]) + digits[point:]
    return text + random.choice(["", "E+3", "e-7", "E-6150", "E6100", "e-6200"])


def rounded_to_places(a, places, mode):
    if not a.is_finite() or a.as_tuple().exponent >= -places:
        return a
    return a.quantize(Decimal((0, (1,), -places)), rounding=mode, context=EXACT)


MODES = {"HalfEven": decimal.ROUND_HALF_EVEN, "TowardZero": decimal.ROUND_DOWN, "Up": decimal.ROUND_CEILING, "Down": decimal.ROUND_FLOOR}


def pairs(count):
    special = [(Decimal(a), Decimal(b)) for a in SPECIAL for b in SPECIAL]
    yield from random.sample(special, 150)
    for _ in range(count):
        a = operand()
        yield a, operand() if random.random() < 0.4 else near(a)


def main():
    for name in ["add", "subtract", "multiply", "divide"]:
        for a, b in pairs(500):
            line(name, show(a), show(b), show(getattr(IEEE, name)(a, b)))
    for a, b in pairs(400):
        line("remainder", show(a), show(b), show(EXACT.remainder(a, b)))
        if not a.is_nan() and not b.is_nan():
            line("compare", show(a), show(b), int(EXACT.compare(a, b)))
    singles = [Decimal(a) for a in SPECIAL] + [operand() for _ in range(400)]
    for a in singles:
        line("sqrt", show(a), show(IEEE.sqrt(a)))
        line("double", show(a), double_bits(float(a)))
        if not a.is_nan():
            line("format", show(a), str(a))
        whole = int(a) if a.is_finite() else None
        is_int64 = whole is not None and -2 ** 63 <= whole < 2 ** 63
        line("truncate", show(a), whole if is_int64 else "none")
        line("integer", show(a), whole if is_int64 and whole == a else "none")
        for mode, rounding in MODES.items():
            places = random.randint(-20, 34)
            line("places", show(a), places, mode, show(rounded_to_places(a, places, rounding)))
    for _ in range(500):
        text = literal()
        line("parse", text, show(IEEE.create_decimal(text)))
    for _ in range(300):
        double = struct.unpack(">d", random.randbytes(8))[0] if random.random() < 0.5 else random.uniform(-1e6, 1e6)
        if double == double and abs(double) != float("inf") and double != 0:
            a = Decimal(double)
            line("from_double", double_bits(double), show(a.quantize(Decimal((0, (1,), a.adjusted() - 14)), context=EXACT)))


with gzip.GzipFile(fileobj=sys.stdout.buffer, mode="wb", compresslevel=9, mtime=0, filename="") as file:
    import io
    out = io.TextIOWrapper(file, encoding="ascii")
    main()
    out.flush()
