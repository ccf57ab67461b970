"""Writes decimal_functions.txt: functions of decimals by Intel's decimal library, whose results MongoDB returns.

Needs a C compiler and Debian's package libintelrdfpmath-dev.

python3 slate-query/tests/decimal_functions.py > slate-query/tests/decimal_functions.txt
"""

import random
import subprocess
import tempfile
from decimal import Context, Decimal, ROUND_HALF_EVEN

DECIMAL128 = Context(prec=34, rounding=ROUND_HALF_EVEN, Emin=-6143, Emax=6144)

# Reads "function x" or "function x y" from each line, and writes the result.
PROGRAM = r"""
#define DECIMAL_CALL_BY_REFERENCE 0
#define DECIMAL_GLOBAL_ROUNDING 0
#define DECIMAL_GLOBAL_EXCEPTION_FLAGS 0
#include <stdio.h>
#include <string.h>
#include <wchar.h>
#include <fenv.h>
#include <bid_conf.h>
#include <bid_functions.h>
#define UNARY(name) if (!strcmp(function, #name)) r = bid128_##name(x, 0, &flags);
int main() {
    char function[64], a[64], b[64], line[256], text[64];
    while (fgets(line, sizeof line, stdin)) {
        strcpy(b, "0");
        if (sscanf(line, "%63s %63s %63s", function, a, b) < 2) return 1;
        unsigned flags = 0;
        BID_UINT128 x = bid128_from_string(a, 0, &flags), y = bid128_from_string(b, 0, &flags), r = x;
        UNARY(exp) UNARY(log) UNARY(log10) UNARY(sin) UNARY(cos) UNARY(tan) UNARY(asin) UNARY(acos) UNARY(atan)
        UNARY(sinh) UNARY(cosh) UNARY(tanh) UNARY(asinh) UNARY(acosh) UNARY(atanh)
        if (!strcmp(function, "atan2")) r = bid128_atan2(x, y, 0, &flags);
        if (!strcmp(function, "pow")) {
            BID_UINT128 ten = bid128_from_string("10", 0, &flags), two = bid128_from_string("2", 0, &flags);
            if (bid128_quiet_equal(x, ten, &flags)) r = bid128_exp10(y, 0, &flags);
            else if (bid128_quiet_equal(x, two, &flags)) r = bid128_exp2(y, 0, &flags);
            else r = bid128_pow(x, y, 0, &flags);
            // As MongoDB does, so that the result has as many digits as possible.
            r = bid128_add(r, bid128_from_string("0E-6176", 0, &flags), 0, &flags);
        }
        bid128_to_string(text, r, &flags);
        puts(text);
    }
}
"""

# Conditions under which an operand is in the domain of a function.
DOMAINS = {
    "exp": lambda x: True,
    "log": lambda x: x > 0,
    "log10": lambda x: x > 0,
    "sin": lambda x: True,
    "cos": lambda x: True,
    "tan": lambda x: True,
    "asin": lambda x: x.copy_abs() <= 1,
    "acos": lambda x: x.copy_abs() <= 1,
    "atan": lambda x: True,
    "sinh": lambda x: True,
    "cosh": lambda x: True,
    "tanh": lambda x: True,
    "asinh": lambda x: x.copy_abs() > Decimal("1E-4900") or not x,
    "acosh": lambda x: x >= 1,
    "atanh": lambda x: x.copy_abs() < 1,
}

SPECIAL = """0 -0 0.00 0E+5 0.5 1 1.0 1.5 2 3 10 100 0.1 -0.5 -1 -2.5 1E-20 -1E-20 1E+20 13999 -13999 14150 -14220 14149.385 20000
-20000 0.7 0.71 0.9999999999999999999999999999999999 1.000000000000000000000000000000001 1E-6000 1E-41 1E-45 1E-53 64 65 -64.5
1E+6000 1E-6143 9.999999999999999999999999999999999E+6144 5E+40 1E+100""".split()


def operands(generator):
    yield from map(Decimal, SPECIAL)
    for _ in range(60):
        digits = generator.randint(1, 34)
        coefficient = generator.randrange(10 ** (digits - 1), 10**digits)
        sign = generator.choice([1, 1, -1])
        yield Decimal(sign * coefficient).scaleb(-digits + generator.choice([-8, -3, -1, 0, 0, 1, 1, 2, 3, 6]), DECIMAL128)


def questions(generator):
    for name, domain in DOMAINS.items():
        for x in operands(generator):
            if domain(x):
                yield f"{name} {x}"
    for base, exponent in [
        ("2", "3"), ("-2", "3"), ("1.5", "2"), ("0", "2"), ("-0", "3"), ("0", "0"), ("5", "0"), ("10", "0"), ("2", "0"), ("1", "7"),
        ("2", "0.5"), ("2", "-0.5"), ("2", "12000"), ("2", "-12000"), ("2", "30000"), ("10", "20"), ("10", "-6176"), ("10", "6144"),
        ("10", "6145"), ("10", "0.3"), ("10", "-6170.5"), ("10", "7000"), ("-10", "-7001"), ("3", "1E+40"),
        ("9.999999999999999999999999999999999E+6144", "2"),
        ("9.999999999999999999999999999999999E+6144", "-1"), ("9.999999999999999999999999999999999E+6144", "0.5"),
        ("1.000000000000000000000000000000001", "1E+33"),
        ("1.000000001", "1000"), ("0.999999999999", "5E+12"), ("Infinity", "2"), ("Infinity", "-2"), ("-Infinity", "3"),
        ("-Infinity", "2"), ("0.5", "Infinity"), ("0.5", "-Infinity"), ("2", "Infinity"), ("-1", "Infinity"), ("10", "-Infinity"),
    ]:
        yield f"pow {base} {exponent}"
    for _ in range(120):
        base = Decimal(generator.randrange(1, 10**12)).scaleb(generator.randint(-13, 2))
        exponent = Decimal(generator.randrange(-(10**9), 10**9)).scaleb(generator.randint(-9, -7))
        yield f"pow {base} {exponent}"
    for _ in range(60):
        yield f"pow {generator.randrange(1, 1000)} {generator.randrange(-20, 40)}"
    for y, x in [("0", "1"), ("-0", "1"), ("0", "-1"), ("1", "0"), ("-1", "0"), ("1E-50", "1"), ("1E-50", "-1"), ("Infinity", "1"),
                 ("Infinity", "-Infinity"), ("-Infinity", "Infinity"), ("1", "-Infinity"), ("1", "Infinity"), ("0", "0")]:
        yield f"atan2 {y} {x}"
    for _ in range(60):
        y, x = (Decimal(generator.randrange(-(10**15), 10**15)).scaleb(generator.randint(-18, 3)) for _ in "yx")
        yield f"atan2 {y} {x}"


def answers(lines):
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/decimal.c", "w") as source:
            source.write(PROGRAM)
        program = f"{folder}/decimal"
        library = "-l:libbidgcc000.a"
        subprocess.run(["cc", "-O1", "-w", f"{folder}/decimal.c", "-o", program, library, "-lm"], check=True)
        return subprocess.run([program], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True).stdout.split()


def main():
    lines = list(questions(random.Random(2719)))
    for line, answer in zip(lines, answers(lines), strict=True):
        print(line, answer.lstrip("+").replace("Inf", "Infinity"))


main()
