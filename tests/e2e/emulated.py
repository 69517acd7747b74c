"""Other processors, emulated: 64-bit Arm, and x86 with fewer instructions than this machine has.

`./dev aarch64` makes what the tests on Arm run: build-aarch64/bin/transept and the system's libraries for it.
"""

import json
import os

import pronunciation
from tool import Tool, expect, expect_error, expect_success


def arm_tool(root):
    program, sysroot = os.path.join(root, "build-aarch64/bin"), os.path.join(root, ".deps/aarch64/sysroot")
    expect(os.path.exists(os.path.join(program, "transept")), "there is no build-aarch64/bin/transept; run ./dev aarch64")
    return Tool(program, emulator=("qemu-aarch64", "-L", sysroot))


def x86_tool(tool, processor):
    return Tool(tool.folder, emulator=("qemu-x86_64", "-cpu", processor))


def compile_model(tool, root, tmp, levels, *arguments):
    artifact = os.path.join(tmp, "g2p.tsp")
    expect_success(tool.compile(os.path.join(root, "models/g2p"), artifact, "--cpu-levels", levels, *arguments), "compile")
    return artifact


def level_of(tool, artifact):
    result = tool.run("transept", "bench", artifact, "--repeat", "1", "--tokens", "2", "--json")
    expect_success(result, "bench")
    return json.loads(result.stdout)["level"]


def samples_on_arm(tool, root, tmp):
    pronunciation.check_samples(arm_tool(root), root, compile_model(tool, root, tmp, "neon"))


def same_bits_on_arm(tool, root, tmp, precision):
    """Levels that fuse multiply-adds agree in every bit, whatever the architecture."""
    artifact = compile_model(tool, root, tmp, "avx2,neon", "--precision", precision)
    requests = "".join(json.dumps({"text": word, "num_beams": 4, "num_return_sequences": 2}) + "\n" for word in ("cathedral", "nave", "choir"))
    here, there = (
        t.run("transept", "generate", artifact, *flags, stdin=requests) for t, flags in ((tool, ("--cpu", "avx2")), (arm_tool(root), ()))
    )
    expect_success(here, "avx2")
    expect_success(there, "neon")
    expect(here.stdout == there.stdout, f"answers differ: {here.stdout[:200]!r} and {there.stdout[:200]!r}")


def no_code_for_arm(tool, root, tmp):
    artifact = compile_model(tool, root, tmp, "avx2,x86-64")
    result = arm_tool(root).run("transept", "translate", artifact, stdin="nave\n")
    expect_error(result, 7, "'avx2' needs avx2", "'x86-64' needs sse2")


def chosen_on_x86(tool, root, tmp, processor, level):
    artifact = compile_model(tool, root, tmp, "avx512,avx2,x86-64")
    emulated = x86_tool(tool, processor)
    chosen = level_of(emulated, artifact)
    expect(chosen == level, f"chose {chosen}")
    pronunciation.check_samples(emulated, root, artifact, modes=("greedy",))


def refused_on_x86(tool, root, tmp):
    artifact = compile_model(tool, root, tmp, "avx512,avx2")
    result = x86_tool(tool, "Nehalem").run("transept", "translate", artifact, stdin="nave\n")
    expect_error(result, 7, "'avx512' needs avx512f", "'avx2' needs avx2")


def tests(tool, root):
    yield "emulated aarch64 samples", lambda tmp: samples_on_arm(tool, root, tmp)
    for precision in ("fp32", "int8", "int8-weights"):
        yield f"emulated aarch64 same bits {precision}", lambda tmp, precision=precision: same_bits_on_arm(tool, root, tmp, precision)
    yield "emulated aarch64 without its code", lambda tmp: no_code_for_arm(tool, root, tmp)
    for processor, level in (("Haswell", "avx2"), ("Nehalem", "x86-64")):
        yield f"emulated {processor}", lambda tmp, processor=processor, level=level: chosen_on_x86(tool, root, tmp, processor, level)
    yield "emulated Nehalem without its code", lambda tmp: refused_on_x86(tool, root, tmp)
