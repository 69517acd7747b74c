#!/usr/bin/env python3
"""End-to-end tests: the built programs, from model files to answers.

Usage: run.py [--bin DIR] [--only WORD,...] [--jobs N] [-v]. The programs are those in DIR, else those on PATH.
Prints a line per failure, and at the end 'N passed, N failed'.
"""

import argparse
import concurrent.futures
import os
import sys
import tempfile
import time

import answers
import batching
import benches
import cases
import compiler
import differential
import emulated
import families
import integers
import lines
import memory
import models
import outliers
import paper
import precisions
import pronunciation
import shortlists
import texts
import traces
import vocabulary
import vulkan
from tool import Failed, Tool

MODULES = (
    compiler, lines, batching, cases, models, families, answers, paper, precisions, outliers, integers,
    pronunciation, texts, memory, benches, traces, vulkan, differential, vocabulary, shortlists, emulated,
)
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def run_test(test):
    name, function = test
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="transept-e2e-") as tmp:
        try:
            function(tmp)
            why = None
        except Failed as failure:
            why = str(failure)
        except Exception as error:  # a broken test is a failed one
            why = f"{type(error).__name__}: {error}"
    return name, why, time.monotonic() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin")
    parser.add_argument("--only", default="", help="run tests whose names contain one of these words")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("-v", action="store_true", dest="verbose")
    arguments = parser.parse_args()
    tool = Tool(arguments.bin)
    words = arguments.only.split(",")
    tests = [
        (name, function)
        for module in MODULES
        for name, function in module.tests(tool, ROOT)
        if any(word in name for word in words)
    ]
    passed = failed = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for name, why, seconds in pool.map(run_test, tests):
            passed, failed = passed + (why is None), failed + (why is not None)
            if why:
                print(f"{name}: {why}", flush=True)
            elif arguments.verbose:
                print(f"{name}: ok, {seconds:.1f} s", flush=True)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
