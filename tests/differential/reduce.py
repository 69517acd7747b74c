#!/usr/bin/env python3
"""Makes a model that shows a failure smaller, as long as it shows it.

Usage: reduce.py CASE OUT --bin DIR [--mode plain|unoptimized|evaluated]
       reduce.py MODEL.onnx OUT.onnx --command 'COMMAND {}'

A case is a folder like those that run.py keeps: it still fails, in the same way, when `transept-conformance` says so of it with
numbers put aside; expected values are computed again at every try. Of a single model, the command decides, with {} as its path:
exit code 0 means that it still shows what is looked for. Tried are, over and over: fewer data sets, one output alone, an inner
value as the output, an inner value as an input (with the numbers it had), a node left out where its input has the same type.
Needs the packages onnx and numpy.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnx.printer
from graphs import convert, names_read
from onnx import helper, shape_inference
from onnx.reference import ReferenceEvaluator
from references import Disagreement, double_model, read_case, write_case
from run import failures, runner


def copy_of(model):
    other = onnx.ModelProto()
    other.CopyFrom(model)
    return other


def without_dead(model):
    """The same model without nodes, initializers and inputs that no output needs."""
    graph, needed = model.graph, {value.name for value in model.graph.output}
    kept = []
    for node in reversed(graph.node):
        if needed & set(node.output):
            kept.append(node)
            needed |= names_read(node)
    nodes = list(reversed(kept))
    for field in ("node", "initializer", "input", "value_info"):
        items = nodes if field == "node" else [item for item in getattr(graph, field) if item.name in needed]
        items = [type(item).FromString(item.SerializeToString()) for item in items]
        del getattr(graph, field)[:]
        getattr(graph, field).extend(items)
    return model


def known_types(model):
    """ValueInfo by name, as far as shapes can be inferred."""
    try:
        inferred = shape_inference.infer_shapes(model, data_prop=True).graph
    except Exception:
        inferred = model.graph
    return {v.name: v for v in [*inferred.value_info, *inferred.input, *inferred.output] if v.type.tensor_type.elem_type}


class Case:
    """A model with inputs per data set; `None` where a command decides and no numbers are needed."""

    def __init__(self, model, bindings):
        self.model, self.bindings = model, bindings

    def size(self):
        """Smaller is better: nodes first, then inputs, data sets, bytes."""
        return (len(self.model.graph.node), len(self.model.graph.input), len(self.bindings or ()), self.model.ByteSize())

    def candidates(self):
        graph, types = self.model.graph, known_types(self.model)
        if self.bindings and len(self.bindings) > 1:
            for binding in self.bindings:
                yield Case(self.model, [binding])
        if len(graph.output) > 1:
            for output in graph.output:
                yield self.with_outputs([output])
        inner = [name for node in graph.node for name in node.output if name in types]
        for name in bisected(inner):
            if [name] != [output.name for output in graph.output]:
                yield self.with_outputs([types[name]])
        for name in bisected(inner):
            yield self.with_input(types[name])
        for index, node in enumerate(graph.node):
            for name in node.input:
                if len(node.output) == 1 and same_type(types.get(name), types.get(node.output[0])):
                    yield self.bypassed(index, name)

    def with_outputs(self, outputs):
        model = copy_of(self.model)
        del model.graph.output[:]
        model.graph.output.extend(outputs)
        return Case(without_dead(model), self.bindings)

    def with_input(self, value):
        """The node that makes a value is replaced by an input."""
        bindings = None
        if self.bindings is not None:
            bindings = [{**binding, value.name: self.value_of(value, binding)} for binding in self.bindings]
        model = copy_of(self.model)
        for node in model.graph.node:
            for i, name in enumerate(node.output):
                if name == value.name:
                    node.output[i] = f"{name}_unused"
        model.graph.input.append(value)
        return Case(without_dead(model), bindings)

    def value_of(self, value, binding):
        model = double_model(self.model)
        del model.graph.output[:]
        model.graph.output.append(value)
        wide = {name: array.astype("f8") if array.dtype.kind not in "iub" else array for name, array in binding.items()}
        with np.errstate(all="ignore"):
            return convert(ReferenceEvaluator(model).run(None, wide)[0], value.type.tensor_type.elem_type)

    def bypassed(self, index, replacement):
        model = copy_of(self.model)
        gone = model.graph.node[index].output[0]
        del model.graph.node[index]
        for node in model.graph.node:
            for i, name in enumerate(node.input):
                if name == gone:
                    node.input[i] = replacement
        for output in model.graph.output:
            if output.name == gone:
                model.graph.node.append(helper.make_node("Identity", [replacement], [gone]))
        return Case(without_dead(model), self.bindings)


def bisected(items):
    """The middle first, then the middles of what is left: an accepted one halves the rest."""
    spans, order = [(0, len(items))], []
    for low, high in spans:
        if low < high:
            middle = (low + high) // 2
            order.append(items[middle])
            spans += [(middle + 1, high), (low, middle)]
    return order


def same_type(a, b):
    return a is not None and b is not None and a.type.SerializeToString() == b.type.SerializeToString()


def kind_of(reason):
    """A failure without what changes from model to model: numbers, names in quotes, paths."""
    return re.sub(r"-?\d[\d.e+-]*|nan|inf", "#", re.sub(r"'[^']*'|\(node[^)]*\)|/\S+", "…", reason))[:60] if reason else None


class ConformanceTest:
    def __init__(self, program, mode, folder):
        self.program, self.mode, self.folder = program, mode, folder

    def reason(self, case):
        try:
            onnx.checker.check_model(case.model)
            write_case(os.path.join(self.folder, "case"), case.model, case.bindings)
        except Disagreement:
            return None
        except Exception:  # no valid model any more
            return None
        return failures(self.program, self.folder, self.mode).get("case")


class CommandTest:
    def __init__(self, command, folder):
        self.command, self.path = command, os.path.join(folder, "model.onnx")

    def reason(self, case):
        onnx.save(case.model, self.path)
        result = subprocess.run(self.command.replace("{}", self.path), shell=True, capture_output=True)
        return "shown" if result.returncode == 0 else None


def reduce(case, test, say=lambda text: None):
    """The smallest case found whose failure is of the same kind."""
    wanted = kind_of(test.reason(case))
    if wanted is None:
        raise SystemExit("the model does not show a failure as it is")
    say(f"{len(case.model.graph.node)} nodes: {wanted}")
    progress = True
    while progress:
        progress = False
        for candidate in case.candidates():
            try:
                smaller = candidate.size() < case.size() and kind_of(test.reason(candidate)) == wanted
            except (KeyError, ValueError):
                smaller = False
            if smaller:
                case, progress = candidate, True
                say(f"{len(case.model.graph.node)} nodes")
                break
    return case


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("out")
    parser.add_argument("--bin")
    parser.add_argument("--mode", default="plain")
    parser.add_argument("--command")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="transept-reduce-") as folder:
        if arguments.command:
            case, test = Case(onnx.load(arguments.source), None), CommandTest(arguments.command, folder)
        else:
            case, test = Case(*read_case(arguments.source)), ConformanceTest(runner(arguments.bin), arguments.mode, folder)
        case = reduce(case, test, lambda text: print(text, flush=True))
    if arguments.command:
        onnx.save(case.model, arguments.out)
    else:
        write_case(arguments.out, case.model, case.bindings)
    print(onnx.printer.to_text(case.model.graph))


if __name__ == "__main__":
    sys.exit(main())
