"""The same answers on a Vulkan device: everything compiled for shaders, and run on vulkan:0 under the validation layers."""

import os

import answers
import batching
import families
import models
import pronunciation
from tool import Tool, expect, expect_success

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


def tests(tool, root):
    device = OnDevice(tool)
    for module in (models, families, answers):
        for name, function in module.tests(device, root):
            yield f"vulkan {name}", function
    yield "vulkan pronunciation samples", lambda tmp: pronunciation.check_samples(device, root, pronunciation.compile_model(device, root, tmp))
    yield "vulkan batching", lambda tmp: batching.same_as_alone(device, root, "marian-tiny", tmp, count=18)
    yield "vulkan dumps", lambda tmp: dumps(tool, root, tmp)
