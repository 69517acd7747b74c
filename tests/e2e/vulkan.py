"""The same answers on a Vulkan device: everything compiled for shaders, and run on vulkan:0 under the validation layers."""

import json
import math
import os
import re
import subprocess

import numpy as np

import answers
import batching
import families
import integers
import models
import precisions
import pronunciation
from tinyonnx import model, node
from tool import Tool, expect, expect_error, expect_success, read

RUNNING = ("generate", "translate", "score", "run")


class OnDevice(Tool):
    """Compiles for shaders, and runs on the first device."""

    def __init__(self, tool):
        super().__init__(tool.folder)

    def compile(self, source, output, *arguments, **options):
        return super().compile(source, output, "--target", "vulkan", *arguments, **options)

    def run(self, program, *arguments, **options):
        if arguments and arguments[0] in RUNNING:
            arguments = (*arguments, "--device", "vulkan:0", "--vulkan-validation")
        return super().run(program, *arguments, **options)


def dumps(tool, root, tmp):
    """Both targets in one file, from the start or from any dump: the same bytes."""
    whole, again, folder = (os.path.join(tmp, name) for name in ("whole.tsp", "again.tsp", "dumps"))
    expect_success(tool.compile(os.path.join(root, "tests/models/marian-tiny"), whole, "--target", "vulkan,cpu", "--cpu-levels", "x86-64", "--dump-ir", folder), "compile")
    with open(whole, "rb") as file:
        want = file.read()
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".mlir"):
            continue
        phase = name[3:-5]
        expect_success(tool.compile(os.path.join(folder, name), again, "--start-from", phase), f"from {phase}")
        with open(again, "rb") as file:
            expect(file.read() == want, f"from {phase}: other bytes")


MATRICES, DOT = "cooperativeMatrixInt8", "shaderIntegerDotProduct"


def offered(tool):
    """Features of the first device that shaders have variants for."""
    return set(json.loads(tool.run("transept", "devices", "--json").stdout)["devices"][1]["shaders_use"])


DEVICE = ("--device", "vulkan:0", "--vulkan-validation")
# Mesa's software device has subgroups of 8, or as many floats as vectors are told to have.
SUBGROUPS = {4: "128", 8: "", 16: "512"}


def with_subgroups(count):
    return dict(os.environ, LP_NATIVE_VECTOR_WIDTH=SUBGROUPS[count]) if SUBGROUPS[count] else None


def compiled_graph(tool, tmp, name, graph, *flags):
    source, artifact = (os.path.join(tmp, name + suffix) for suffix in (".onnx", ".tsp"))
    with open(source, "wb") as file:
        file.write(graph)
    expect_success(tool.compile(source, artifact, *flags), f"compile {name}")
    return artifact


def run_graph(tool, tmp, artifact, inputs, *flags, env=None):
    given, got = os.path.join(tmp, "in.npz"), os.path.join(tmp, "out.npz")
    np.savez(given, **inputs)
    expect_success(tool.run("transept", "run", artifact, "--inputs", given, "--outputs", got, *flags, env=env), " ".join(flags))
    with np.load(got) as file:
        return {name: file[name] for name in file.files}


def exact_integers(tool, tmp):
    """Sums of 8-bit products, rounding of rows included: the bits of the processor, with and without dot products and matrices."""
    # Of the software devices, Mesa before 26 multiplies no matrices: there is nothing to run there.
    matrices = [MATRICES] if MATRICES in offered(tool) else []
    rng = np.random.default_rng(7)
    for depth in (5, 64, 514, 2052):
        weights = {"w": rng.normal(size=(depth, 70)).astype(np.float32)}
        graph = model([node("MatMul", ["x", "w"], ["y"])], [("x", np.float32, ["n", depth])], [("y", np.float32, ["n", 70])], weights)
        artifact = compiled_graph(tool, tmp, f"product{depth}", graph, "--target", "cpu,vulkan", "--cpu-levels", "x86-64", "--precision", "int8")
        rows = 70  # more than two tiles of matrices
        x = rng.normal(size=(rows, depth)).astype(np.float32) * np.float32(10.0) ** rng.integers(-30, 30, size=(rows, 1)).astype(np.float32)
        x[3] = 0
        x[4, 1] = 1e37
        want = run_graph(tool, tmp, artifact, {"x": x}, "--device", "cpu")["y"]
        for rows in (1, 2, 9, 70):
            for features in ("none", DOT, *matrices):
                trace = os.path.join(tmp, "trace.json")
                got = run_graph(tool, tmp, artifact, {"x": x[:rows]}, *DEVICE, "--vulkan-features", features, "--trace", trace)["y"]
                expect(np.array_equal(got, want[:rows]), f"{depth}, {rows} rows, {features}: other bits in {(got != want[:rows]).sum()} elements")
                # Two panels, and tiles of 32 rows of matrices, else of four: which variant it was.
                items = [event["args"]["items"] for event in json.loads(read(trace))["traceEvents"] if event["ph"] == "X"]
                height = 32 if features == MATRICES else 4
                expect(items == [2 * -(-rows // height)], f"{depth}, {rows} rows, {features}: {items} items")


def narrow_products(tool, tmp):
    """bf16 and 8-bit weights: what the processor computes, up to the order of additions."""
    rng = np.random.default_rng(8)
    for mode in ("bf16", "int8-weights"):
        for depth in (1, 7, 64, 250):
            weights = {"w": rng.normal(size=(depth, 130)).astype(np.float32)}
            graph = model([node("MatMul", ["x", "w"], ["y"])], [("x", np.float32, ["n", depth])], [("y", np.float32, ["n", 130])], weights)
            artifact = compiled_graph(tool, tmp, f"{mode}{depth}", graph, "--target", "cpu,vulkan", "--cpu-levels", "x86-64", "--precision", mode)
            x = rng.normal(size=(6, depth)).astype(np.float32)
            want = run_graph(tool, tmp, artifact, {"x": x}, "--device", "cpu")["y"]
            got = run_graph(tool, tmp, artifact, {"x": x}, *DEVICE)["y"]
            worst = np.abs(got - want).max()
            expect(worst <= 1e-6 * depth, f"{mode}, {depth}: off by {worst}")


def precision(device, tool, root, tmp, mode):
    """The same bits in any batch, and the words of the processor but for few."""
    artifact = os.path.join(tmp, "both.tsp")
    expect_success(tool.compile(os.path.join(root, "models/g2p"), artifact, "--precision", mode, "--target", "cpu,vulkan", "--cpu-levels", "x86-64"), "compile")
    words = [row[0] for row in precisions.test_rows(root)[::400]]
    requests = "".join(json.dumps({"text": word}) + "\n" for word in words)

    def answers(program, *flags):
        result = program.run("transept", "generate", artifact, *flags, stdin=requests, timeout=900)
        expect_success(result, " ".join(map(str, flags)))
        return result.stdout.splitlines()

    want, got = answers(tool, "--device", "cpu"), answers(device, "--batch", 32)
    expect(answers(device, "--batch", 3) == got, f"{mode}: other bits in other batches")
    same = sum(json.loads(a)["hypotheses"][0]["ids"] == json.loads(b)["hypotheses"][0]["ids"] for a, b in zip(want, got))
    expect(len(got) == len(words) and same >= 0.9 * len(words), f"{mode}: {same} of {len(words)} answers are those of the processor")


REQUESTS = [
    {"input_ids": [7, 9, 11, 4, 0], "num_beams": 1, "max_new_tokens": 30, "return_token_scores": True},
    {"input_ids": [5, 5, 6, 20, 8, 0], "num_beams": 1, "max_new_tokens": 9, "min_new_tokens": 6, "return_token_scores": True},
    {"input_ids": [12, 3, 0], "num_beams": 1, "max_new_tokens": 25, "suppress_tokens": [3, 8], "return_token_scores": True},
    {"input_ids": [30, 31, 32, 33, 0], "num_beams": 1, "max_new_tokens": 17, "no_repeat_ngram_size": 2, "return_token_scores": True},
    {"input_ids": [14, 3, 9, 0], "num_beams": 3, "max_new_tokens": 12, "num_return_sequences": 2},
    {"input_ids": [21, 4, 13, 6, 0], "num_beams": 4, "max_new_tokens": 31, "min_new_tokens": 20, "num_return_sequences": 4},
    {"input_ids": [5, 17, 0], "num_beams": 2, "max_new_tokens": 40, "length_penalty": 0.6, "return_token_scores": True, "suppress_tokens": [4, 9]},
    {"input_ids": [8, 33, 11, 0], "num_beams": 5, "max_new_tokens": 24, "early_stopping": True, "num_return_sequences": 5},
    {"input_ids": [19, 2, 27, 0], "num_beams": 3, "max_new_tokens": 18, "search": "tensor2tensor"},
    {"input_ids": [6, 31, 0], "num_beams": 3, "max_new_tokens": 15, "no_repeat_ngram_size": 2},
    {"input_ids": [40, 2, 0], "num_beams": 1, "max_new_tokens": 6, "return_alignments": "mean"},
]


def generated(tool, artifact, requests, *flags, env=None):
    text = "".join(json.dumps(request) + "\n" for request in requests)
    result = tool.run("transept", "generate", artifact, *flags, stdin=text, env=env, timeout=900)
    expect_success(result, " ".join(map(str, flags)))
    return result.stdout


def steps_ahead(device, root, tmp):
    """Steps that are computed before anybody asked for them change no bit."""
    for name in ("marian-tiny", "bart-tiny", "gpt2-tiny", "gru-seq2seq-tiny"):
        artifact = os.path.join(tmp, name + ".tsp")
        expect_success(device.compile(os.path.join(root, "tests/models", name), artifact), "compile")
        requests = REQUESTS if name == "marian-tiny" or name == "bart-tiny" else REQUESTS[:-1]
        if name == "gru-seq2seq-tiny":
            requests = [{"decoder_start_token_id": 1, "eos_token_id": 2, **request} for request in requests]
        for batch in (1, 4):
            want = generated(device, artifact, requests, "--steps-ahead", 1, "--batch", batch)
            for ahead in (2, 8, 64):
                got = generated(device, artifact, requests, "--steps-ahead", ahead, "--batch", batch)
                expect(got == want, f"{name}: {ahead} steps ahead in batches of {batch} give other answers")


def submissions(device, root, tmp):
    """Forty steps take forty submissions one by one, and far fewer ahead: what the device chooses is what the host does."""
    artifact = os.path.join(tmp, "m.tsp")
    expect_success(device.compile(os.path.join(root, "tests/models/marian-tiny"), artifact), "compile")
    source, library = os.path.join(root, "tests/e2e/countSubmissions.c"), os.path.join(tmp, "libvulkan.so.1")
    subprocess.run(["cc", "-std=c11", "-O1", "-shared", "-fPIC", source, "-o", library], check=True, capture_output=True)
    real = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, env={"PATH": os.environ["PATH"] + ":/sbin:/usr/sbin"})
    path = re.search(r"libvulkan\.so\.1 .*x86-64.*=> (\S+)", real.stdout).group(1)
    env = {**os.environ, "LD_LIBRARY_PATH": tmp, "REAL_VULKAN": path}
    for beams in (1, 4):
        request = json.dumps({"input_ids": [7, 9, 11, 4, 0], "num_beams": beams, "max_new_tokens": 40, "min_new_tokens": 40})
        counts = {}
        for ahead in (1, 8, 40):
            result = device.run("transept", "generate", artifact, "--steps-ahead", ahead, stdin=request, env=env)
            expect_success(result, f"{ahead} steps ahead")
            counts[ahead] = int(re.search(r"^submissions: (\d+)$", result.stderr, re.MULTILINE).group(1))
        # The last token is forced, so its step is one of its own; so is the first one of beams, which begin as one row.
        own = 1 if beams == 1 else 2
        expect(counts[1] - counts[8] == 40 - own - 5 and counts[1] - counts[40] == 40 - own - 1, f"{beams} beams, submissions by steps ahead: {counts}")


def variants(device, tool, root, tmp):
    """Every variant gives the same tokens, in workgroups of any size; what a device lacks is refused by name."""
    artifact = os.path.join(tmp, "variants.tsp")
    expect_success(device.compile(os.path.join(root, "tests/models/marian-tiny"), artifact), "compile")
    shaders = json.loads(tool.run("transept", "inspect", artifact, "--json", "--kernels").stdout)["code"][0]["shaders"]
    counts = [len(shader["variants"]) for shader in shaders]
    expect(max(counts) == 2 and min(counts) == 1, f"variants {counts}")
    expect(all(shader["variants"][-1]["features"] == [] for shader in shaders), "a last variant is not plain")

    def tokens(text):
        return [[hypothesis["ids"] for hypothesis in json.loads(line)["hypotheses"]] for line in text.splitlines()]

    want = tokens(generated(device, artifact, REQUESTS))
    for subgroup in SUBGROUPS:
        env = with_subgroups(subgroup)
        listed = json.loads(tool.run("transept", "devices", "--json", env=env).stdout)["devices"][1]
        expect(listed["limits"]["subgroup_size"] == subgroup and listed["workgroup"] == max(64, 8 * subgroup), f"devices says {listed}")
        expect({"subgroupArithmetic", DOT} == set(listed["shaders_use"]) - {MATRICES}, f"devices says {listed}")
        expect(bool(listed["matrices"]) == (MATRICES in listed["shaders_use"]), f"devices says {listed}")
        for features in ("none", "subgroupArithmetic"):
            got = tokens(generated(device, artifact, REQUESTS, "--vulkan-features", features, env=env))
            expect(got == want, f"subgroups of {subgroup}, {features}: other tokens")
    request = json.dumps(REQUESTS[0])
    refused = tool.run("transept", "generate", artifact, "--device", "vulkan:0", "--vulkan-features", "shaderInt16", stdin=request)
    expect_error(refused, 2, "no shader has a variant for 'shaderInt16'")


def sines(tool, tmp):
    """Sine and cosine of f32 without doubles, to three units of the last place wherever they are."""
    graph = model(
        [node("Sin", ["x"], ["s"]), node("Cos", ["x"], ["c"])], [("x", np.float32, ["n"])], [("s", np.float32, ["n"]), ("c", np.float32, ["n"])]
    )
    artifact = compiled_graph(tool, tmp, "sines", graph, "--target", "vulkan")
    code = json.loads(tool.run("transept", "inspect", artifact, "--json").stdout)["code"][0]
    expect("shaderFloat64" not in code["features"], f"needs {code['features']}")
    rng = np.random.default_rng(3)
    parts = [rng.uniform(-top, top, 20000) for top in (1e-3, 4, 100, 1e4, 1e6, 1e30)] + [np.arange(20000) * np.pi / 2, [0.0, 1e-30]]
    x = np.concatenate(parts).astype(np.float32)
    got = run_graph(tool, tmp, artifact, {"x": x}, *DEVICE)
    for name, function in (("s", np.sin), ("c", np.cos)):
        want = function(x.astype(np.float64))  # of doubles, reduced exactly
        error = np.abs(got[name] - want) / np.spacing(np.abs(want).astype(np.float32)).astype(np.float64)
        expect(error.max() <= 3, f"{name}: {error.max():.2f} units at {x[error.argmax()]!r}")
    special = run_graph(tool, tmp, artifact, {"x": np.array([np.inf, -np.inf, np.nan, -0.0], np.float32)}, *DEVICE)
    expect(np.isnan(special["s"][:3]).all() and np.isnan(special["c"][:3]).all(), f"special values {special}")
    expect(np.signbit(special["s"][3]) and special["s"][3] == 0 and special["c"][3] == 1, f"special values {special}")


TINY = np.finfo(np.float32).tiny


def off_by(got, want):
    """Errors in units of the last place where results are finite. What lies below the normal range may be 0."""
    low, finite = np.abs(want) < TINY, np.abs(want) < np.finfo(np.float32).max
    want = np.where(finite, want, 1)
    error = np.abs(got.astype(np.float64) - want) / np.spacing(np.maximum(np.abs(want), TINY).astype(np.float32)).astype(np.float64)
    return np.where(finite, np.where(low & (got == 0), 0, error), 0)


def functions(tool, tmp):
    """Functions of f32 without doubles, over their whole range."""
    limits = {
        "Exp": (np.exp, 1.5),
        "Log": (np.log, 1.5),
        "Tanh": (np.tanh, 4),
        "Erf": (np.vectorize(math.erf), 4),
        "Sinh": (np.sinh, 3),
        "Cosh": (np.cosh, 3),
        "Asinh": (np.arcsinh, 3),
        "Acosh": (np.arccosh, 3.5),
        "Atanh": (np.arctanh, 3),
    }
    names = tuple(limits)
    nodes = [node(name, ["x"], [name]) for name in names] + [node("Pow", ["x", "y"], ["Pow"]), node("Mod", ["x", "y"], ["Mod"], fmod=1)]
    results = (*names, "Pow", "Mod")
    graph = model(nodes, [(name, np.float32, ["n"]) for name in "xy"], [(name, np.float32, ["n"]) for name in results])
    artifact = compiled_graph(tool, tmp, "functions", graph, "--target", "vulkan")
    code = json.loads(tool.run("transept", "inspect", artifact, "--json").stdout)["code"][0]
    expect("shaderFloat64" not in code["features"], f"needs {code['features']}")
    rng = np.random.default_rng(4)

    def compute(x, y):
        x, y = (np.asarray(value).astype(np.float32) for value in np.broadcast_arrays(x, y))
        x, y = (np.where(np.abs(value) < TINY, np.copysign(np.float32(0), value), value) for value in (x, y))
        return x.astype(np.float64), y.astype(np.float64), run_graph(tool, tmp, artifact, {"x": x, "y": y}, *DEVICE)

    count = 20000
    any_float = rng.integers(0, 1 << 32, count, dtype=np.uint64).astype(np.uint32).view(np.float32)
    near = 10.0 ** rng.uniform(-7, 0, count) * rng.choice([-1, 1], count)
    finite = np.concatenate([any_float[np.isfinite(any_float)], near, 1 + near, rng.uniform(-90, 90, count)])
    with np.errstate(all="ignore"):
        x, _, got = compute(finite, 1)
        for name, (function, limit) in limits.items():
            want = function(x)
            error = off_by(got[name], want)
            expect(error.max() <= limit, f"{name}: {error.max():.2f} units at {x[error.argmax()]!r}")
            special = ~np.isfinite(want.astype(np.float32))
            expect(np.array_equal(got[name][special], want.astype(np.float32)[special], equal_nan=True), f"{name}: special values")
        low = np.concatenate([np.arange(1, 2000), rng.integers(1, 1 << 23, count)]).astype(np.uint32).view(np.float32)
        error = off_by(run_graph(tool, tmp, artifact, {"x": low, "y": low}, *DEVICE)["Log"], np.log(low.astype(np.float64)))
        expect(error.max() <= limits["Log"][1], f"Log below the normal range: {error.max():.2f} units at {low[error.argmax()]!r}")
        # Logarithms of results over the whole range, bases of any size and close to 1; then whole and fractional exponents of any base.
        target = rng.uniform(-103, 88, count)
        wide, close = np.exp(rng.uniform(-100, 88, count)).astype(np.float32), (1 + near[np.abs(near) < 0.9]).astype(np.float32)
        close = np.where(close == 1, np.float32(1.5), close)
        bases = np.concatenate([wide, close, rng.uniform(-20, 20, count), any_float, any_float[::-1], -wide])
        exponents = [target / np.log(wide), target[: close.size] / np.log(close), rng.integers(-12, 13, count), rng.uniform(-3, 3, count), any_float, np.rint(target)]
        x, y, got = compute(bases, np.concatenate(exponents))
        want = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
        error = off_by(got["Pow"], want)
        expect(error.max() <= 1.5, f"Pow: {error.max():.2f} units at {x[error.argmax()]!r}, {y[error.argmax()]!r}")
        special = ~np.isfinite(want.astype(np.float32))
        expect(np.array_equal(got["Pow"][special], want.astype(np.float32)[special], equal_nan=True), "Pow: special values")
        want = np.fmod(x.astype(np.float32), y.astype(np.float32))
        same = (got["Mod"] == want) | (np.isnan(got["Mod"]) & np.isnan(want)) | (np.abs(want) < TINY) & (got["Mod"] == 0)
        expect(same.all(), f"Mod: {got['Mod'][~same][:3]} of {x[~same][:3]} and {y[~same][:3]}, not {want[~same][:3]}")
        ends = np.array([0.0, -0.0, 1, -1, 2, -2, 0.5, -3, np.inf, -np.inf, np.nan], np.float32)
        x, y, got = compute(*(grid.ravel() for grid in np.meshgrid(ends, ends)))
        for name, want in (("Pow", np.power(x, y)), ("Mod", np.fmod(x, y))):
            close = (np.abs(got[name] - want) <= 2e-7 * np.abs(want)) | (got[name] == want)
            same = close & (np.signbit(got[name]) == np.signbit(want)) | (np.isnan(got[name]) & np.isnan(want))
            expect(same.all(), f"{name}: {got[name][~same][:3]} of {x[~same][:3]} and {y[~same][:3]}")
        x, _, got = compute(ends, 1)
        for name, (function, _) in limits.items():
            want = function(x).astype(np.float32)
            same = (np.isnan(got[name]) & np.isnan(want)) | ((np.abs(got[name] - want) <= 1e-6) | (got[name] == want)) & (np.signbit(got[name]) == np.signbit(want))
            expect(same.all(), f"{name}: {got[name][~same]} of {x[~same]}")


def tests(tool, root):
    device = OnDevice(tool)
    for module in (models, families, answers):
        for name, function in module.tests(device, root):
            yield f"vulkan {name}", function
    for name in integers.CONTRACTIONS:
        yield f"vulkan {name}", lambda tmp, name=name: integers.as_onnx_runtime(device, root, name, tmp)
    yield "vulkan exact integers", lambda tmp: exact_integers(tool, tmp)
    yield "vulkan narrow products", lambda tmp: narrow_products(tool, tmp)
    for mode in precisions.MODES:
        yield f"vulkan precision {mode}", lambda tmp, mode=mode: precision(device, tool, root, tmp, mode)
    yield "vulkan steps ahead", lambda tmp: steps_ahead(device, root, tmp)
    yield "vulkan submissions", lambda tmp: submissions(device, root, tmp)
    yield "vulkan variants", lambda tmp: variants(device, tool, root, tmp)
    yield "vulkan sines", lambda tmp: sines(tool, tmp)
    yield "vulkan functions", lambda tmp: functions(tool, tmp)
    yield "vulkan pronunciation samples", lambda tmp: pronunciation.check_samples(device, root, pronunciation.compile_model(device, root, tmp))
    yield "vulkan batching", lambda tmp: batching.same_as_alone(device, root, "marian-tiny", tmp, count=18)
    yield "vulkan dumps", lambda tmp: dumps(tool, root, tmp)
