"""Writes decimal_functions.txt: functions of decimals, rounded half to even to 34 digits, computed by mpmath with 160 digits.

python3 slate-query/tests/decimal_functions.py > slate-query/tests/decimal_functions.txt
"""

import random
from decimal import Context, Decimal, ROUND_HALF_EVEN

import mpmath

mpmath.mp.dps = 160
DECIMAL128 = Context(prec=34, rounding=ROUND_HALF_EVEN, Emin=-6143, Emax=6144)

FUNCTIONS = {
    "exp": (mpmath.exp, lambda x: x.copy_abs() < 14000),
    "ln": (mpmath.log, lambda x: x > 0),
    "log10": (mpmath.log10, lambda x: x > 0),
    "sin": (mpmath.sin, lambda x: x.copy_abs() < Decimal("1e40")),
    "cos": (mpmath.cos, lambda x: x.copy_abs() < Decimal("1e40")),
    "tan": (mpmath.tan, lambda x: x.copy_abs() < Decimal("1e40")),
    "asin": (mpmath.asin, lambda x: x.copy_abs() <= 1),
    "acos": (mpmath.acos, lambda x: x.copy_abs() <= 1),
    "atan": (mpmath.atan, lambda x: True),
    "sinh": (mpmath.sinh, lambda x: x.copy_abs() < 14000),
    "cosh": (mpmath.cosh, lambda x: x.copy_abs() < 14000),
    "tanh": (mpmath.tanh, lambda x: True),
    "asinh": (mpmath.asinh, lambda x: True),
    "acosh": (mpmath.acosh, lambda x: x >= 1),
    "atanh": (mpmath.atanh, lambda x: x.copy_abs() < 1),
}


def number(x):
    return mpmath.mpf(str(x))


def rounded(value):
    return DECIMAL128.create_decimal(mpmath.nstr(value, 150, min_fixed=1, max_fixed=0) if value else "0")


def operands(generator):
    for text in ["0.5", "1", "1.5", "2", "3", "10", "100", "0.1", "-0.5", "-1", "-2.5", "1E-20", "-1E-20", "1E+20", "13999",
                 "0.9999999999999999999999999999999999", "1.000000000000000000000000000000001", "1E-6000"]:
        yield Decimal(text)
    for _ in range(25):
        digits = generator.randint(1, 34)
        coefficient = generator.randrange(10 ** (digits - 1), 10**digits)
        sign = generator.choice([1, 1, -1])
        yield Decimal(sign * coefficient).scaleb(-digits + generator.randint(-8, 6), DECIMAL128)


def main():
    generator = random.Random(2719)
    for name, (function, domain) in FUNCTIONS.items():
        for x in operands(generator):
            # Intel's library, and so MongoDB, takes e to a tiny power for exactly 1.
            if domain(x) and not (name == "exp" and x.copy_abs() < Decimal("1e-35")):
                print(name, x, rounded(function(number(x))))
    for _ in range(60):
        base = Decimal(generator.randrange(1, 10**12)).scaleb(generator.randint(-10, 2))
        exponent = Decimal(generator.randrange(-(10**9), 10**9)).scaleb(generator.randint(-9, -7))
        print("pow", base, exponent, rounded(mpmath.power(number(base), number(exponent))))
    for _ in range(40):
        y, x = (Decimal(generator.randrange(-(10**15), 10**15)).scaleb(generator.randint(-18, 3)) for _ in "yx")
        print("atan2", y, x, rounded(mpmath.atan2(number(y), number(x))))


main()
