#!/usr/bin/env python3
"""Random graphs, computed by the interpreter, by native code and by references that must agree.

Usage: run.py --bin DIR [--count N] [--seed S] [--modes MODE,...] [--keep DIR]. Graph number S … S + N - 1 are made; each is run
as it is, without the optimising phases, and by the interpreter before and after fusion. Expected values are those of
ONNX's reference evaluator in double precision, checked against ONNX Runtime where that is installed. Needs the packages
onnx and numpy. Folders of graphs that fail are kept in DIR, where reduce.py can make them smaller. Prints a line per
failure, and at the end 'N passed, N failed'.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

from graphs import Graph
from references import Disagreement, write_case

MODES = {"plain": [], "unoptimized": ["--unoptimized"], "evaluated": ["--evaluated"]}


def runner(folder):
    found = os.path.join(folder, "transept-conformance") if folder else shutil.which("transept-conformance")
    if not found or not os.path.exists(found):
        raise SystemExit("no transept-conformance; give --bin, or have it on PATH")
    return found


def failures(program, folder, mode, only=""):
    """Reasons by name of the cases in a folder that do not pass."""
    command = [program, "--tests", folder, "--jobs", "1", *MODES[mode], *(["--only", only] if only else [])]
    result = subprocess.run(command, capture_output=True, text=True, errors="replace")
    found = dict(re.findall(r"^FAIL +(\S+): (.*)$", result.stdout, re.MULTILINE))
    if result.returncode not in (0, 1) or (result.returncode == 1 and not found):
        raise SystemExit(f"{' '.join(command)}: exit {result.returncode}: {(result.stdout + result.stderr)[-400:]}")
    return found


def generate(folder, seeds):
    """Writes a case per seed; returns how many could not be used because references differ, and how many had a second one."""
    dropped = seconded = 0
    for seed in seeds:
        graph = Graph(seed)
        model = graph.model()
        case = os.path.join(folder, f"seed_{seed}_{graph.precision}_opset{graph.opset}")
        try:
            seconded += write_case(case, model, graph.bindings()) > 0
        except Disagreement:
            dropped += 1
    return dropped, seconded


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--keep")
    arguments = parser.parse_args()
    program = runner(arguments.bin)
    with tempfile.TemporaryDirectory(prefix="transept-differential-") as folder:
        dropped, seconded = generate(folder, range(arguments.seed, arguments.seed + arguments.count))
        bad = set()
        for mode in arguments.modes.split(","):
            for name, reason in failures(program, folder, mode).items():
                print(f"{name}, {mode}: {reason}", flush=True)
                bad.add(name)
        for name in bad if arguments.keep else ():
            shutil.copytree(os.path.join(folder, name), os.path.join(arguments.keep, name), dirs_exist_ok=True)
    print(f"references differ on {dropped} graphs, which are left out; ONNX Runtime agreed on {seconded}")
    print(f"{arguments.count - dropped - len(bad)} passed, {len(bad)} failed")
    return len(bad) > 0


if __name__ == "__main__":
    sys.exit(main())
