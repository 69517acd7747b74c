"""The compiler from outside: the first run, equal bytes, dumps, the report, bad input, interruptions."""

import json
import os
import shutil
import signal
import subprocess
import time

import numpy as np
import tinyonnx
from tool import expect, expect_error, expect_success, last_words, read


def linear(tmp, name="linear.onnx"):
    content, w, b = tinyonnx.linear_model()
    return tinyonnx.write(os.path.join(tmp, name), content), w, b


def run_linear(tool, tmp):
    """y = x · w + b, computed."""
    source, w, b = linear(tmp)
    artifact = os.path.join(tmp, "linear.tsp")
    expect_success(tool.compile(source, artifact), "compile")
    rng = np.random.default_rng(1)
    for rows in (1, 3, 17):
        x = rng.standard_normal((rows, w.shape[0])).astype("f4")
        np.savez(os.path.join(tmp, "x.npz"), x=x)
        for level in ("avx512", "avx2", "x86-64"):
            result = tool.run("transept", "run", artifact, "--cpu", level, "--inputs", os.path.join(tmp, "x.npz"), "--outputs", os.path.join(tmp, "y.npz"))
            if result.returncode == 7:
                continue  # this machine lacks the level
            expect_success(result, f"run on {level}")
            y, want = np.load(os.path.join(tmp, "y.npz"))["y"], x.astype("f8") @ w + b
            expect(np.abs(y - want).max() < 1e-5 * np.abs(want).max(), f"{level}, {rows} rows: differs by {np.abs(y - want).max()}")


def default_output(tool, tmp):
    """Without -o, the artifact has the name of the source and lies in the working directory."""
    source, _, _ = linear(tmp)
    os.mkdir(os.path.join(tmp, "work"))
    expect_success(tool.run("transept", "compile", source, cwd=os.path.join(tmp, "work")), "compile")
    expect(os.listdir(os.path.join(tmp, "work")) == ["linear.tsp"], f"made {os.listdir(os.path.join(tmp, 'work'))}")


def same_bytes(tool, source, tmp):
    """Two directories, two locales, another working directory: one artifact."""
    outputs = []
    for name, env in (("one", {"LC_ALL": "C"}), ("two/deeper", {"LC_ALL": "de_DE.UTF-8", "TZ": "Asia/Tokyo", "TMPDIR": "/nowhere"})):
        folder = os.path.join(tmp, name)
        os.makedirs(folder)
        copy = os.path.join(folder, os.path.basename(source))
        (shutil.copytree if os.path.isdir(source) else shutil.copy)(source, copy)
        outputs.append(os.path.join(folder, "out.tsp"))
        expect_success(tool.compile(copy, outputs[-1], cwd=folder, env={**os.environ, **env}), "compile")
    expect(read(outputs[0]) == read(outputs[1]), "the artifacts differ")


def resume(tool, source, tmp, *flags):
    """Going on from each dump gives the same bytes."""
    whole, dumps = os.path.join(tmp, "whole.tsp"), os.path.join(tmp, "dumps")
    expect_success(tool.compile(source, whole, "--dump-ir", dumps, *flags), "compile")
    names = sorted(name for name in os.listdir(dumps) if name.endswith(".mlir"))
    expect(names and [name[:2] for name in names] == [f"{i:02}" for i in range(1, len(names) + 1)], f"dumps are {names}")
    for name in names:
        phase, output = name[3:-5], os.path.join(tmp, "resumed.tsp")
        # Alone in a directory: what it needs lies beside it.
        alone = os.path.join(tmp, phase)
        os.mkdir(alone)
        shutil.copy(os.path.join(dumps, name), alone)
        if os.path.exists(os.path.join(dumps, "weights.bin")):
            os.link(os.path.join(dumps, "weights.bin"), os.path.join(alone, "weights.bin"))
        expect_success(tool.compile(os.path.join(alone, name), output, "--start-from", phase), f"from {phase}")
        expect(read(output) == read(whole), f"from {phase}: the artifact differs")
        os.remove(output)


def dump_passes(tool, source, tmp):
    """Passes that changed something leave a file that transept-opt reads."""
    dumps = os.path.join(tmp, "dumps")
    result = tool.run("transept", "compile", source, "--stop-after", "fuse", "--dump-ir", dumps, "--dump-ir-passes")
    expect_success(result, "compile")
    passes = sorted(name for name in os.listdir(dumps) if name.count(".") == 2)
    expect(any(name.startswith("02-shapes.1-transept-shapes") for name in passes), f"dumps are {sorted(os.listdir(dumps))}")
    for name in passes:
        result = tool.run("transept-opt", os.path.join(dumps, name))
        expect(result.returncode == 0 and "module" in result.stdout, f"{name}: {last_words(result)}")


def opt_equals_compile(tool, source, tmp):
    """transept-opt runs a phase as the compiler does."""
    dumps = os.path.join(tmp, "dumps")
    expect_success(tool.run("transept", "compile", source, "--stop-after", "stage", "--dump-ir", dumps), "compile")
    names = sorted(name for name in os.listdir(dumps) if name.endswith(".mlir"))
    for before, after in zip(names, names[1:]):
        one = tool.run("transept-opt", os.path.join(dumps, before), f"--transept-{after[3:-5]}", "--normalize")
        two = tool.run("transept-opt", os.path.join(dumps, after), "--normalize")
        expect_success(one, after)
        expect_success(two, after)
        expect(one.stdout == two.stdout, f"{after} is not what transept-opt makes of {before}")


def one_normal_form(tool, root, tmp):
    """Layouts, opsets and attention styles of the same weights are one program after staging."""
    models = os.path.join(root, "tests/models")
    narrow = ("fp16-native", "int8")  # rounded weights are other weights
    names = [name for name in os.listdir(models) if name.startswith("marian-tiny") and not name.endswith(narrow)]
    sources = {name: os.path.join(models, name) for name in names}
    for layout, files in {
        "split": ("encoder_model", "decoder_model", "decoder_with_past_model"),
        "merged": ("encoder_model", "decoder_model_merged"),
        "without caches": ("encoder_model", "decoder_model"),
    }.items():
        sources[layout] = os.path.join(tmp, layout)
        os.mkdir(sources[layout])
        for name in ("config.json", "generation_config.json", *(f"{file}.onnx" for file in files)):
            shutil.copy(os.path.join(models, "marian-tiny", name), sources[layout])
    programs = {}
    for name, source in sorted(sources.items()):
        dumps = os.path.join(tmp, "dumps")
        expect_success(tool.run("transept", "compile", source, "--stop-after", "stage", "--dump-ir", dumps), name)
        result = tool.run("transept-opt", os.path.join(dumps, "05-stage.mlir"), "--normalize")
        expect_success(result, name)
        programs.setdefault(result.stdout, []).append(name)
    expect(len(programs) == 1, f"there are {len(programs)} programs: {sorted(programs.values())}")
    expect("transept.cache_append" in next(iter(programs)), "no caches were derived")


def report(tool, source, tmp):
    path = os.path.join(tmp, "report.json")
    expect_success(tool.compile(source, os.path.join(tmp, "m.tsp"), "--report", path), "compile")
    with open(path, encoding="utf-8") as file:
        page = json.load(file)
    for key in ("attention", "assumptions", "shape_ops_left", "generic_ops", "weights", "staging", "seconds", "artifact"):
        expect(key in page, f"the report has no '{key}'")
    expect(page["attention"]["fused"] == page["attention"]["sites"] > 0, f"attention: {page['attention']}")
    expect(page["shape_ops_left"] == 0, f"{page['shape_ops_left']} shape ops left")
    expect(page["weights"]["bytes_saved"] > 0, "no weights are shared")
    expect(page["artifact"]["bytes"] == os.path.getsize(os.path.join(tmp, "m.tsp")), "the size is another one")
    expect(list(page["seconds"])[0] == "import" and list(page["seconds"])[-1] == "pack", f"times of {list(page['seconds'])}")


def unsupported_all_at_once(tool, tmp):
    kinds = ["Fancy", "Odd", "Strange", "Weird", "Rare"]
    names = ["x", *(f"h{i}" for i in range(4)), "y"]
    nodes = [tinyonnx.node(kind, [names[i]], [names[i + 1]], f"n{i}", "my.ops") for i, kind in enumerate(kinds)]
    content = tinyonnx.model(nodes, [("x", "f4", [2])], [("y", "f4", [2])], domains=["my.ops"])
    source, path = tinyonnx.write(os.path.join(tmp, "m.onnx"), content), os.path.join(tmp, "r.json")
    result = tool.compile(source, os.path.join(tmp, "m.tsp"), "--report", path)
    expect_error(result, 4, "Fancy", "Odd", "Strange", "and 2 more")
    with open(path, encoding="utf-8") as file:
        details = json.load(file)["error"]["details"]
    for kind, node in zip(kinds, ("n0", "n1", "n2", "n3", "n4")):
        expect(any(kind in line and node in line for line in details), f"the report does not name {kind} of {node}")


def bad_sources(tool, root, tmp):
    """What users give by mistake: each with its exit code and a word of the line."""
    marian = os.path.join(root, "tests/models/marian-tiny")

    def partial(name, *files):
        folder = os.path.join(tmp, name)
        os.mkdir(folder)
        for file in files:
            shutil.copy(os.path.join(marian, file), folder)
        return folder

    def file(name, content):
        return tinyonnx.write(os.path.join(tmp, name), content)

    whole = read(os.path.join(marian, "encoder_model.onnx"))
    attempts = {
        "a file that is not there": (os.path.join(tmp, "none.onnx"), 6, "none.onnx"),
        "an empty file": (file("empty.onnx", b""), 3, "empty"),
        "a picture": (file("picture.onnx", b"\x89PNG\r\n\x1a\n" + bytes(100)), 3, "PNG"),
        "text": (file("text.onnx", b"hello world\n" * 20), 3, "text.onnx"),
        "half a model": (file("half.onnx", whole[: len(whole) // 2]), 3, "half.onnx"),
        "an empty directory": (partial("nothing"), 3, "nothing"),
        "a directory without a decoder": (partial("encoder-only", "encoder_model.onnx", "config.json"), 3, "decoder"),
        "a decoder without its encoder": (partial("decoder-only", "decoder_model.onnx", "config.json"), 3, "encoder"),
        "a character device": ("/dev/null", 6, "/dev/null"),
        "a dump without a phase": (file("x.mlir", b"module {}\n"), 2, "--start-from"),
    }
    for what, (source, code, word) in attempts.items():
        try:
            expect_error(tool.compile(source, os.path.join(tmp, "out.tsp")), code, word)
        except Exception as why:
            raise type(why)(f"{what}: {why}") from None
        expect(not os.path.exists(os.path.join(tmp, "out.tsp")), f"{what}: left an artifact")


MEMORY, SECONDS = 400 << 20, 60  # what a small bad model may cost; a good small one takes 180 MB


def compile_measured(tool, source, output):
    """The result of a compile, its peak memory in bytes and its seconds."""
    start = time.monotonic()
    command = [tool.path("transept"), "compile", source, "-o", output, "-q"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace") as process:
        out, err = process.stdout.read(), process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return subprocess.CompletedProcess(command, process.returncode, out, err), usage.ru_maxrss * 1024, time.monotonic() - start


def nested_ifs(depth):
    """Each in the first branch of the one before it."""
    body = [tinyonnx.node("Neg", ["x"], ["y0"])]
    for level in range(1, depth + 1):
        inner = tinyonnx.graph(body, [], [(f"y{level - 1}", "f4", ["n"])])
        other = tinyonnx.graph([tinyonnx.node("Identity", ["x"], [f"e{level}"])], [], [(f"e{level}", "f4", ["n"])])
        body = [tinyonnx.node("If", ["c"], [f"y{level}"], then_branch=inner, else_branch=other)]
    return tinyonnx.model(body, [("x", "f4", ["n"]), ("c", "bool", [])], [(f"y{depth}", "f4", ["n"])])


def huge_constant(kind, size):
    """A few hundred bytes that say `size` elements."""
    size = np.array([size], "i8")
    inputs = {"ConstantOfShape": (["size"], {"size": size}), "Expand": (["one", "size"], {"one": np.ones(1, "f4"), "size": size}),
              "Range": (["zero", "end", "one"], {"zero": np.array(0, "f4"), "end": size.astype("f4")[0], "one": np.array(1, "f4")}),
              "Tile": (["one", "size"], {"one": np.ones(1, "f4"), "size": size})}  # fmt: skip
    names, weights = inputs[kind]
    nodes = [tinyonnx.node(kind, names, ["big"]), tinyonnx.node("Add", ["x", "big"], ["y"])]
    return tinyonnx.model(nodes, [("x", "f4", [1])], [("y", "f4", ["n"])], weights)


def hostile_models(tool, tmp):
    """Small files that ask for much or contradict themselves: quick, in little memory, one line or a small artifact."""
    x, y = [("x", "f4", ["n"])], [("y", "f4", ["n"])]

    def neg(*pairs, **settings):
        return tinyonnx.model([tinyonnx.node("Neg", [a], [b]) for a, b in pairs], x, y, **settings)

    branch = tinyonnx.graph([tinyonnx.node("Neg", ["x"], ["h"])], [], [("h", "f4", ["n"])])
    outer = [tinyonnx.node("Abs", ["x"], ["h"]), tinyonnx.node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)]
    refused = {
        "cycle": (neg(("y", "h"), ("h", "y")), 3),
        "own input": (neg(("y", "y")), 3),
        "dangling input": (neg(("nowhere", "y")), 3),
        "two makers": (neg(("x", "y"), ("x", "y")), 3),
        "outer name": (tinyonnx.model(outer, [*x, ("c", "bool", [])], y), 3),
        "no opset": (neg(("x", "y"), opset=0), 3),
        "opset 99": (neg(("x", "y"), opset=99), 4),
        "negative size": (tinyonnx.model([tinyonnx.node("Neg", ["x"], ["y"])], [("x", "f4", [-2])], y), 3),
        "50 Ifs": (nested_ifs(50), 5),
    }
    accepted = {
        "20 Ifs": nested_ifs(20),
        **{f"{kind} of {size}": huge_constant(kind, size) for kind in ("ConstantOfShape", "Expand", "Range", "Tile") for size in (25_000_000,)},
    }
    either = {f"{kind} of 2^40": huge_constant(kind, 1 << 40) for kind in ("ConstantOfShape", "Expand", "Range", "Tile")}
    either["ConstantOfShape of 2^62"] = huge_constant("ConstantOfShape", 1 << 62)
    artifact = os.path.join(tmp, "out.tsp")
    for what, content in [*((n, c) for n, (c, _) in refused.items()), *accepted.items(), *either.items()]:
        result, memory, seconds = compile_measured(tool, tinyonnx.write(os.path.join(tmp, "m.onnx"), content), artifact)
        try:
            if what in refused:
                expect_error(result, refused[what][1])
            elif what in accepted or result.returncode == 0:
                expect_success(result, "compile")
                expect(os.path.getsize(artifact) < 1 << 20, f"an artifact of {os.path.getsize(artifact)} bytes")
            else:
                expect_error(result)
                expect(result.returncode in (3, 4, 5), last_words(result))
            expect(memory < MEMORY and seconds < SECONDS, f"{memory >> 20} MB, {seconds:.0f} s")
        except Exception as why:
            raise type(why)(f"{what}: {why}") from None


def bad_flags(tool, tmp):
    source, _, _ = linear(tmp)
    out = os.path.join(tmp, "out.tsp")
    attempts = [
        (["--target", "metal"], 2, "metal"),
        (["--precision", "int4"], 2, "int4"),
        (["--cpu-levels", "avx1024"], 2, "avx1024"),
        (["--stop-after", "fusion"], 2, "fusion"),
        (["--start-from", "fusion"], 2, "fusion"),
        (["--start-from", "pack"], 2, "pack"),
        (["--dump-ir-passes"], 2, "--dump-ir"),
        (["--no-such-flag"], 2, "--no-such-flag"),
        (["--as-graph", "--as-export"], 2, "exclude"),
        (["--dump-ir", os.path.join(source, "below")], 6, "dumps"),
    ]
    for flags, code, word in attempts:
        expect_error(tool.compile(source, out, *flags), code, word)
    expect_error(tool.run("transept", "compile"), 2)
    expect_error(tool.compile(source, source), 2, "same")
    expect_error(tool.compile(source, os.path.join(tmp, "none", "out.tsp")), 6, "none")
    expect_error(tool.compile(source, tmp), 6)
    expect(not os.path.exists(out), "left an artifact")


def bad_dumps(tool, tmp):
    """Dumps that were edited: an error, never a crash."""
    source, _, _ = linear(tmp)
    dumps, out = os.path.join(tmp, "dumps"), os.path.join(tmp, "out.tsp")
    expect_success(tool.compile(source, out, "--dump-ir", dumps), "compile")
    os.remove(out)
    text = read(os.path.join(dumps, "04-fuse.mlir"))
    expect_error(tool.compile(os.path.join(dumps, "04-fuse.mlir"), out, "--start-from", "fold"), 2, "fuse")
    for what, content, phase, code in (
        ("cut", text[: len(text) // 2], "fuse", 3),
        ("of another phase", text.replace(b'transept.phase = "fuse"', b'transept.phase = "plan"'), "plan", 3),
        ("without weights", text.replace(b'transept.weights = "weights.bin"', b'transept.weights = "../weights.bin"'), "fuse", 3),
        ("with odd options", text.replace(b'cpu_levels = [', b'cpu_levels = [1, '), "fuse", 3),
    ):
        edited = tinyonnx.write(os.path.join(dumps, "edited.mlir"), content)
        try:
            expect_error(tool.compile(edited, out, "--start-from", phase), code)
        except Exception as why:
            raise type(why)(f"{what}: {why}") from None
    os.remove(os.path.join(dumps, "weights.bin"))
    expect_error(tool.compile(os.path.join(dumps, "04-fuse.mlir"), out, "--start-from", "fuse"), 6, "weights.bin")


def keeps_old_output(tool, source, tmp):
    """A compile that fails, or is stopped, leaves what was there, and no temporaries."""
    out, temporary = os.path.join(tmp, "out", "m.tsp"), os.path.join(tmp, "temporary")
    os.makedirs(os.path.dirname(out))
    os.makedirs(temporary)
    tinyonnx.write(out, b"old")
    bad = tinyonnx.write(os.path.join(tmp, "bad.onnx"), b"bad")
    expect_error(tool.compile(bad, out), 3)
    env = {**os.environ, "TMPDIR": temporary}
    for stop, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)):
        for delay in (0.05, 0.2, 0.5):
            process = subprocess.Popen([tool.path("transept-compile"), source, "-o", out], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            time.sleep(delay)
            process.send_signal(stop)
            error = process.communicate(timeout=60)[1]
            if process.returncode == 0:
                tinyonnx.write(out, b"old")  # it was faster
                continue
            # A signal that comes before the program's own code ends it the plain way.
            expect(process.returncode in (code, -stop), f"{stop.name}: exit {process.returncode}")
            expect("error" not in error, f"{stop.name}: said {error!r}")
            expect(read(out) == b"old", f"{stop.name}: the output changed")
            if stop != signal.SIGKILL:
                expect(os.listdir(temporary) == [], f"{stop.name}: left {os.listdir(temporary)}")
                expect(os.listdir(os.path.dirname(out)) == ["m.tsp"], f"{stop.name}: left {os.listdir(os.path.dirname(out))}")
    time.sleep(0.5)  # the killed supervisor's child dies on its own
    expect_success(tool.compile(source, out, env=env), "the next compile")
    expect(os.listdir(temporary) == [], f"stale files are left: {os.listdir(temporary)}")
    expect(os.listdir(os.path.dirname(out)) == ["m.tsp"], f"stale files are left: {os.listdir(os.path.dirname(out))}")


def dying_child(tool, source, tmp):
    """Whatever ends the compiler proper, the user reads one line."""
    out = os.path.join(tmp, "m.tsp")
    for stop in (signal.SIGSEGV, signal.SIGKILL):
        process = subprocess.Popen([tool.path("transept-compile"), source, "-o", out], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        child = None
        for _ in range(200):
            with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as file:
                child = file.read().split()
            if child:
                break
            time.sleep(0.005)
        expect(child, "there is no child")
        time.sleep(0.05)
        os.kill(int(child[0]), stop)
        error = process.communicate(timeout=60)[1]
        expect(process.returncode == 70, f"{stop.name}: exit {process.returncode}")
        expect(error.count("\n") == 1 and error.startswith("transept: error: "), f"{stop.name}: said {error!r}")
        expect(not os.path.exists(out), f"{stop.name}: left an artifact")


def out_of_space(tool, tmp):
    """/dev/full takes the place of a full disk for the report; memory is limited for the rest."""
    source, _, _ = linear(tmp)
    expect_error(tool.compile(source, os.path.join(tmp, "m.tsp"), "--report", "/dev/full"), 6)

    def limited(kilobytes, arguments):
        script = f"ulimit -v {kilobytes}; exec {tool.path('transept-compile')} {arguments}"
        return subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60, check=False)

    for kilobytes in range(180_000, 420_000, 4_000):
        if limited(kilobytes, "--version").returncode != 0:  # not even the libraries fit
            continue
        result = limited(kilobytes, f"{source} -q -o {tmp}/n.tsp")
        if result.returncode == 0:
            break
        expect_error(result, 9)
        expect(not os.path.exists(os.path.join(tmp, "n.tsp")), "left an artifact")


def help_and_version(tool, _):
    for program, *arguments in (("transept", "compile"), ("transept-opt",)):
        result = tool.run(program, *arguments, "--help")
        expect(result.returncode == 0 and "Examples:" in result.stdout, f"{program}: {last_words(result)}")
    result = tool.run("transept", "compile", "--version")
    expect("LLVM 19" in result.stdout and "ONNX" in result.stdout, f"--version says {result.stdout!r}")


def tests(tool, root):
    marian = os.path.join(root, "tests/models/marian-tiny")
    plain = os.path.join(root, "tests/cases/nn_transformer_dynamic/model.onnx")
    yield "compile and run", lambda tmp: run_linear(tool, tmp)
    yield "default output", lambda tmp: default_output(tool, tmp)
    yield "help and version", lambda tmp: help_and_version(tool, tmp)
    for name, source in (("export", marian), ("graph", plain)):
        yield f"same bytes, {name}", lambda tmp, source=source: same_bytes(tool, source, tmp)
        yield f"resume, {name}", lambda tmp, source=source: resume(tool, source, tmp)
        yield f"dump passes, {name}", lambda tmp, source=source: dump_passes(tool, source, tmp)
        yield f"opt equals compile, {name}", lambda tmp, source=source: opt_equals_compile(tool, source, tmp)
    yield "resume, int8", lambda tmp: resume(tool, marian, tmp, "--precision", "int8", "--keep-fp32", "*fc1*")
    yield "resume, 4-bit blocks", lambda tmp: resume(tool, os.path.join(root, "tests/e2e/integers/blocked_uint4.onnx"), tmp)
    yield "resume, linear", lambda tmp: resume(tool, linear(tmp)[0], tmp)
    yield "one normal form", lambda tmp: one_normal_form(tool, root, tmp)
    yield "report", lambda tmp: report(tool, marian, tmp)
    yield "unsupported ops all at once", lambda tmp: unsupported_all_at_once(tool, tmp)
    yield "bad sources", lambda tmp: bad_sources(tool, root, tmp)
    yield "hostile models", lambda tmp: hostile_models(tool, tmp)
    yield "bad flags", lambda tmp: bad_flags(tool, tmp)
    yield "bad dumps", lambda tmp: bad_dumps(tool, tmp)
    yield "keeps old output", lambda tmp: keeps_old_output(tool, marian, tmp)
    yield "dying child", lambda tmp: dying_child(tool, marian, tmp)
    yield "out of space", lambda tmp: out_of_space(tool, tmp)
