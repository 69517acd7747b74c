#!/usr/bin/env python3
"""Prints the polynomial coefficients in codegen/emit/Coefficients.h (needs mpmath).

Each row: the polynomial P of given degree in u(x) whose term scale(x) * P(u(x)) comes closest to target(x) over the
interval, in the sense of the largest |error| * weight(x). Remez' exchange algorithm with 60 digits.
"""
import mpmath as mp

mp.mp.dps = 60


def remez(target, scale, variable, weight, low, high, degree, rounds=12):
    n = degree + 2
    nodes = [low + (high - low) * (1 - mp.cos(mp.pi * (i + mp.mpf(1) / 2) / n)) / 2 for i in range(n)]
    for _ in range(rounds):
        rows = mp.matrix(n, n)
        values = mp.matrix(n, 1)
        for i, x in enumerate(nodes):
            for k in range(degree + 1):
                rows[i, k] = scale(x) * variable(x) ** k * weight(x)
            rows[i, degree + 1] = (-1) ** i
            values[i] = target(x) * weight(x)
        solution = mp.lu_solve(rows, values)
        coefficients = [solution[k] for k in range(degree + 1)]

        def error(x):
            return (scale(x) * mp.polyval(coefficients[::-1], variable(x)) - target(x)) * weight(x)

        grid = [low + (high - low) * i / mp.mpf(60 * n) for i in range(60 * n + 1)]
        found, group = [], []
        sign = 0
        for x in grid:
            e = error(x)
            s = mp.sign(e)
            if s != sign and group:
                found.append(max(group, key=lambda p: abs(p[1])))
                group = []
            sign = s
            group.append((x, e))
        found.append(max(group, key=lambda p: abs(p[1])))
        while len(found) > n:
            found.pop(0 if abs(found[0][1]) < abs(found[-1][1]) else -1)
        if len(found) < n:
            break
        nodes = [x for x, _ in found]
    return coefficients, max(abs(error(x)) for x in grid)


half_ln2 = mp.log(2) / 2 * mp.mpf("1.0005")
root2 = mp.sqrt(2)
quarter = mp.pi / 4 * mp.mpf("1.0005")
tiny = mp.mpf(10) ** -15


def odd(f):
    """Targets of odd functions: f(x) - x, relative to f, with x^3 in front of P(x^2)."""
    return dict(target=lambda x: f(x) - x, scale=lambda x: x**3, variable=lambda x: x * x, weight=lambda x: 1 / f(x))


def log_tail(x):  # log((1+s)/(1-s)) - 2 s
    return mp.log((1 + x) / (1 - x)) - 2 * x


def erf_scaled(x):
    return mp.erf(x) - x


one = lambda x: mp.mpf(1)
same = lambda x: x
square = lambda x: x * x
# A scale with a zero inside the interval would hide sign changes, so these two fit P itself.
exp_tail = dict(target=lambda r: (mp.exp(r) - 1 - r) / r**2 if r else mp.mpf(1) / 2, scale=one, variable=same, weight=one)
log_tail32 = dict(target=lambda f: (mp.log(1 + f) - f + f * f / 2) / f**3 if f else mp.mpf(1) / 3, scale=one, variable=same, weight=one)
log_tail64 = dict(target=log_tail, scale=lambda s: s**3, variable=square, weight=lambda s: 1 / s)
table = [
    ("exp", 4, "f32", exp_tail, -half_ln2, half_ln2),
    ("log", 9, "f32", log_tail32, 1 / root2 - 1, root2 - 1),
    ("logOfRatio", 3, "f32", log_tail64, tiny, (root2 - 1) / (root2 + 1)),
    ("tanh", 4, "f32", odd(mp.tanh), tiny, mp.mpf("0.65")),
    ("erfSmall", 6, "f32", dict(target=erf_scaled, scale=same, variable=square, weight=lambda x: 1 / mp.erf(x)), tiny, mp.mpf(1)),
    ("erfLarge", 8, "f32", dict(target=lambda t: mp.log(mp.erfc(t)), scale=one, variable=same, weight=mp.erfc), mp.mpf("0.99"), mp.mpf("4.0")),
    ("sin", 3, "f32", odd(mp.sin), tiny, quarter),
    ("cos", 2, "f32", dict(target=lambda x: mp.cos(x) - 1 + x * x / 2, scale=lambda x: x**4, variable=square, weight=one), tiny, quarter),
    ("atan", 9, "f32", odd(mp.atan), tiny, mp.mpf(1)),
    ("asin", 5, "f32", odd(mp.asin), tiny, mp.mpf("0.5")),
    ("exp", 10, "f64", exp_tail, -half_ln2, half_ln2),
    ("log", 6, "f64", log_tail64, tiny, (root2 - 1) / (root2 + 1)),
    ("tanh", 11, "f64", odd(mp.tanh), tiny, mp.mpf("0.65")),
    ("erfSmall", 12, "f64", dict(target=erf_scaled, scale=same, variable=square, weight=lambda x: 1 / mp.erf(x)), tiny, mp.mpf(1)),
    ("erfLarge", 22, "f64", dict(target=lambda t: mp.log(mp.erfc(t)), scale=one, variable=lambda t: t - 3, weight=mp.erfc), mp.mpf("0.99"), mp.mpf("6.0")),
    ("sin", 6, "f64", odd(mp.sin), tiny, quarter),
    ("cos", 6, "f64", dict(target=lambda x: mp.cos(x) - 1 + x * x / 2, scale=lambda x: x**4, variable=square, weight=one), tiny, quarter),
]
for name, degree, precision, spec, low, high in table:
    coefficients, error = remez(low=low, high=high, degree=degree, **spec)
    print(f"// largest error {mp.nstr(error, 2)} on [{mp.nstr(low, 4)}, {mp.nstr(high, 4)}]")
    values = ", ".join(mp.nstr(c, 20 if precision == "f64" else 11, min_fixed=0, max_fixed=0) for c in coefficients)
    print(f"constexpr double {name}{precision[1:]}[] = {{{values}}};")
