"""Elementary functions: the nearest doubles."""

from evaluate_cases.common import *

def point(name, x, *more):
    value = getattr(mp, {"pow": "power"}.get(name, name))(*(mpmath.mpf(v) for v in (x, *more)))
    points.append([name, float(x).hex(), float(more[0] if more else 0).hex(), float(value).hex()])


for x in uniform(-700, 700, 30) + uniform(-1, 1, 30) + uniform(-1e-6, 1e-6, 5) + [709.78, -708.3, 0.0, -0.0]:
    point("exp", x)
for x in [10**e for e in uniform(-300, 300, 30)] + uniform(0.5, 2, 30) + [1 + e for e in uniform(-1e-8, 1e-8, 5)] + [5e-324, 1.7e308, 1.0]:
    point("log", x)
for name in ("sin", "cos"):
    for x in uniform(-10, 10, 30) + [10**e for e in uniform(1, 300, 20)] + [math.pi * n for n in (1, 2, 7, 100, 1e9)] + [math.pi * (n + 0.5) for n in (0, 1, 7, 100)] + [6381956970095103 * 2.0**797, 1e-9]:
        point(name, x)
for x in uniform(-3, 3, 30) + uniform(-25, 25, 20) + [10**e for e in uniform(-10, 0, 10)] + [0.0, -0.0]:
    point("tanh", x)
for x in uniform(-3, 3, 30) + uniform(-7, 7, 20) + [10**e for e in uniform(-10, 0, 10)] + [1.0, 3.0, 6.0]:
    point("erf", x)
for _ in range(30):
    point("pow", 10 ** random.uniform(-3, 3), random.uniform(-30, 30))
    point("pow", 10 ** random.uniform(-300, 300), random.uniform(-1, 1))
    point("pow", float(random.randint(2, 30)), float(random.randint(-6, 10)))
    point("pow", 1 + random.uniform(-1e-6, 1e-6), random.uniform(-1e6, 1e6))
for x in uniform(-10, 10, 20) + [10**e for e in uniform(1, 300, 10)] + [1e-9, math.pi / 2]:
    point("tan", x)
for name in ("asin", "acos", "atanh"):
    for x in uniform(-1, 1, 30) + [10**e for e in uniform(-10, 0, 10)] + [0.0, 0.999999999, -0.999999999]:
        point(name, x)
for x in uniform(-3, 3, 30) + [10**e for e in uniform(-10, 20, 20)] + [0.0, 0.0625, 0.4375, 1.0]:
    point("atan", x)
    point("asinh", x)
for x in uniform(-3, 3, 30) + uniform(-705, 705, 10) + [10**e for e in uniform(-10, 0, 10)] + [0.0, 710.0]:
    point("sinh", x)
    point("cosh", x)
for x in uniform(1, 3, 30) + [1 + 10**e for e in uniform(-10, 20, 20)]:
    point("acosh", x)
for x in uniform(-0.999, 3, 30) + [10**e for e in uniform(-20, 300, 20)]:
    point("log1p", x)
