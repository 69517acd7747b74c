"""The tools of tests/differential: graphs are a function of their seed, and what fails is made smaller."""

import os
import stat
import subprocess
import sys

from tool import expect, expect_success, last_words

# Says of a model with a Tanh that an output differs, as transept-conformance would.
FAKE_RUNNER = """#!/bin/sh
grep -qa Tanh "$2/case/model.onnx" || { echo '1 passed, 0 failed, 0 skipped'; exit 0; }
echo "FAIL     case: running: output 'y_$$' differs in $$ of 99 elements"
exit 1
"""

# A graph of many nodes around one that no compiler knows.
UNKNOWN = """
import sys
sys.path.insert(0, sys.argv[1])
import onnx
from graphs import Graph
model = onnx.shape_inference.infer_shapes(Graph(14).model())
node = model.graph.node[len(model.graph.node) // 2]
node.op_type, node.domain = "Fancy", "my.ops"
del node.attribute[:]
model.opset_import.append(onnx.helper.make_opsetid("my.ops", 1))
onnx.save(model, sys.argv[2])
"""


def python(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=600)


def folder_of(root):
    return os.path.join(root, "tests/differential")


def random_graphs(tool, root, tmp):
    """A few that are in no corpus."""
    result = python(os.path.join(folder_of(root), "run.py"), "--bin", tool.folder, "--count", "6", "--seed", "1000")
    expect_success(result, "run.py")
    expect("6 passed, 0 failed" in result.stdout, result.stdout[-300:])


def reduces_by_command(tool, root, tmp):
    source, out = os.path.join(tmp, "m.onnx"), os.path.join(tmp, "small.onnx")
    expect_success(python("-c", UNKNOWN, folder_of(root), source), "make")
    command = f"'{tool.path('transept')}' compile -q {{}} -o '{tmp}/x.tsp'; test $? = 4"
    result = python(os.path.join(folder_of(root), "reduce.py"), source, out, "--command", command)
    expect_success(result, "reduce.py")
    expect(os.path.getsize(out) < 400, f"{os.path.getsize(out)} bytes are left of {os.path.getsize(source)}")
    refused = tool.compile(out, os.path.join(tmp, "x.tsp"))
    expect(refused.returncode == 4 and "my.ops::Fancy" in refused.stderr, last_words(refused))


def reduces_with_numbers(tool, root, tmp):
    """Inner values become inputs with the numbers they had; the failure is recognised though its text changes."""
    case, out, fake = os.path.join(tmp, "case"), os.path.join(tmp, "small"), os.path.join(tmp, "transept-conformance")
    with open(fake, "w", encoding="utf-8") as file:
        file.write(FAKE_RUNNER)
    os.chmod(fake, stat.S_IRWXU)
    make = "import sys; sys.path.insert(0, sys.argv[1]); from graphs import Graph; from references import write_case; g = Graph(229); write_case(sys.argv[2], g.model(), g.bindings())"
    expect_success(python("-c", make, folder_of(root), case), "make")
    result = python(os.path.join(folder_of(root), "reduce.py"), case, out, "--bin", tmp)
    expect_success(result, "reduce.py")
    expect(result.stdout.count("Tanh") == 1 and " = " in result.stdout, result.stdout[-400:])
    left = sorted(os.path.relpath(os.path.join(at, name), out) for at, _, names in os.walk(out) for name in names)
    expect(left == ["model.onnx", "test_data_set_0/input_0.pb", "test_data_set_0/output_0.pb", "tolerance"], f"{left}")


def tests(tool, root):
    yield "random graphs", lambda tmp: random_graphs(tool, root, tmp)
    yield "reduce by command", lambda tmp: reduces_by_command(tool, root, tmp)
    yield "reduce with numbers", lambda tmp: reduces_with_numbers(tool, root, tmp)
