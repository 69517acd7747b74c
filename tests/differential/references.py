"""What a graph should compute: the reference evaluator of ONNX in double precision, and ONNX Runtime where it is installed.

Cases are folders like the node tests of ONNX: model.onnx, test_data_set_N/{input,output}_M.pb, and `tolerance`.
"""

import os
import shutil

import numpy as np
import onnx
from graphs import convert, to_tensor
from onnx import AttributeProto, TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator

try:
    import onnxruntime
except ImportError:
    onnxruntime = None

# How many roundings of the largest element a result may be off, and what one is.
ROUNDINGS = {TensorProto.FLOAT: 64, TensorProto.FLOAT16: 12, TensorProto.BFLOAT16: 12, TensorProto.DOUBLE: 64}
EPSILON = {TensorProto.FLOAT: 2**-23, TensorProto.FLOAT16: 2**-10, TensorProto.BFLOAT16: 2**-7, TensorProto.DOUBLE: 2**-23}
NARROW = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16)
# Operators whose ONNX definition names an argument for a type.
TYPE_ATTRIBUTES = ("to", "dtype", "output_datatype", "stash_type")


def double_tensor(tensor):
    if tensor.data_type not in NARROW:
        return tensor
    return to_tensor(numpy_helper.to_array(tensor).astype("f8"), tensor.name, TensorProto.DOUBLE)


def double_graph(graph):
    for tensor in graph.initializer:
        tensor.CopyFrom(double_tensor(tensor))
    for value in [*graph.input, *graph.output, *graph.value_info]:
        if value.type.tensor_type.elem_type in NARROW:
            value.type.tensor_type.elem_type = TensorProto.DOUBLE
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.TENSOR:
                attribute.t.CopyFrom(double_tensor(attribute.t))
            elif attribute.type == AttributeProto.GRAPH:
                double_graph(attribute.g)
            elif attribute.name in TYPE_ATTRIBUTES and attribute.i in NARROW:
                attribute.i = TensorProto.DOUBLE


def double_model(model):
    """The same model with every float a double, weights rounded as they were."""
    double = onnx.ModelProto()
    double.CopyFrom(model)
    double_graph(double.graph)
    return double


def types_of(values):
    return {value.name: value.type.tensor_type.elem_type for value in values}


def evaluate(model, inputs):
    """Outputs by name, floats as doubles."""
    double = double_model(model)
    wide = {name: array.astype("f8") if types_of(model.graph.input)[name] in NARROW else array for name, array in inputs.items()}
    with np.errstate(all="ignore"):
        results = ReferenceEvaluator(double).run(None, wide)
    return {value.name: np.asarray(result) for value, result in zip(model.graph.output, results)}


def run_onnxruntime(model, inputs):
    """Outputs by name, floats as doubles; None where it does not run the model."""
    if not onnxruntime or any(array.size == 0 for array in inputs.values()):  # some of its kernels divide by a size
        return None
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        results = session.run(None, inputs)
    except Exception:
        return None
    return {value.name: array for value, array in zip(model.graph.output, results)}


def distance(got, want):
    """The largest difference, infinite where shapes or what is not finite differ."""
    got, want = np.asarray(got).astype("f8"), np.asarray(want).astype("f8")
    finite = np.isfinite(want)
    if got.shape != want.shape or not np.array_equal(got[~finite], want[~finite], equal_nan=True):
        return np.inf
    return float(np.max(np.abs(got[finite] - want[finite]), initial=0))


class Disagreement(Exception):
    """Two references differ: the case says nothing about us."""


def expectation(model, binding):
    """Outputs by name in their types, and how far one may be from them: some roundings of the largest element, or four
    times what ONNX Runtime is off in the model's precision."""
    want = evaluate(model, binding)
    theirs = run_onnxruntime(model, binding)
    types = types_of(model.graph.output)
    # The coarsest float of the graph decides, wherever it is.
    floats = [t for t in (types | types_of(model.graph.input) | types_of_tensors(model)).values() if t in EPSILON]
    noise = max((ROUNDINGS[t] * EPSILON[t] for t in floats), default=0)
    absolute = 0.0
    for name, array in want.items():
        if types[name] not in EPSILON:
            if theirs is not None and not np.array_equal(theirs[name], array):
                raise Disagreement(f"{name}: integers differ between references")
            continue
        largest = float(np.max(np.abs(array[np.isfinite(array)]), initial=1))
        absolute = max(absolute, noise * largest)
        if theirs is not None:
            off = distance(theirs[name], array)
            if not off <= 32 * absolute:
                raise Disagreement(f"{name}: ONNX Runtime is {off:.3g} off")
            absolute = max(absolute, 4 * off)
    return {name: convert(array, types[name]) for name, array in want.items()}, absolute, theirs is not None


def types_of_tensors(model):
    constants = [a.t for node in model.graph.node for a in node.attribute if a.type == AttributeProto.TENSOR]
    return {f"{i}": tensor.data_type for i, tensor in enumerate([*model.graph.initializer, *constants])}


def write_case(folder, model, bindings):
    """Writes a folder; returns in how many bindings ONNX Runtime agreed."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    agreed, absolute, sets = 0, 0.0, []
    for binding in bindings:
        wanted = {value.name for value in model.graph.input}
        binding = {name: array for name, array in binding.items() if name in wanted}
        outputs, off, seen = expectation(model, binding)
        agreed, absolute = agreed + seen, max(absolute, off)
        sets.append((binding, outputs))
    for number, (binding, outputs) in enumerate(sets):
        data = os.path.join(folder, f"test_data_set_{number}")
        os.makedirs(data)
        for kind, values, arrays in (("input", model.graph.input, binding), ("output", model.graph.output, outputs)):
            types = types_of(values)
            for i, value in enumerate(values):
                with open(os.path.join(data, f"{kind}_{i}.pb"), "wb") as file:
                    file.write(to_tensor(arrays[value.name], value.name, types[value.name]).SerializeToString(deterministic=True))
    with open(os.path.join(folder, "model.onnx"), "wb") as file:
        file.write(model.SerializeToString(deterministic=True))
    with open(os.path.join(folder, "tolerance"), "w", encoding="utf-8") as file:
        file.write(f"{absolute:.3g} {absolute:.3g}\n")
    return agreed


def read_tensor(path):
    tensor = TensorProto()
    with open(path, "rb") as file:
        tensor.ParseFromString(file.read())
    return numpy_helper.to_array(tensor)


def read_case(folder):
    """The model and its inputs by name, per data set."""
    model, bindings = onnx.load(os.path.join(folder, "model.onnx")), []
    while os.path.isdir(data := os.path.join(folder, f"test_data_set_{len(bindings)}")):
        paths = [os.path.join(data, f"input_{i}.pb") for i in range(len(model.graph.input))]
        bindings.append({value.name: read_tensor(path) for value, path in zip(model.graph.input, paths)})
    return model, bindings
