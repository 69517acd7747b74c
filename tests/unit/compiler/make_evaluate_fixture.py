#!/usr/bin/env python3
"""Writes evaluateFixture.json.inc: small cases for every op of the graph dialect, and points of the elementary
functions. Expected values come from ONNX Runtime, the ONNX reference evaluator, numpy in double precision, and mpmath.

    python make_evaluate_fixture.py        # needs numpy, ml_dtypes, onnx, onnxruntime, mpmath

The cases are in evaluate_cases/, by kind of op. They draw from one random sequence: the order of MODULES decides their values.
"""

import importlib
import json
import os

from evaluate_cases.common import cases, points

MODULES = ("elementwise", "products", "rows", "movement", "attention", "indexed", "recurrent", "functions", "narrow", "scans", "points")

for module in MODULES:
    importlib.import_module(f"evaluate_cases.{module}")

lines = [json.dumps(c, separators=(",", ":")) for c in cases]
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "evaluateFixture.json.inc")
with open(path, "w") as out:
    out.write('// Written by make_evaluate_fixture.py.\nR"json({"cases": [\n')
    for start in range(0, len(lines), 40):  # a compiler may limit the length of a literal
        out.write(",\n".join(lines[start:start + 40]) + (",\n" if start + 40 < len(lines) else "\n"))
        out.write(')json"\nR"json(')
    out.write('], "points": [\n' + ",\n".join(json.dumps(p, separators=(",", ":")) for p in points) + ']})json"\n')
print(len(cases), "cases,", len(points), "points,", os.path.getsize(path), "bytes")
