# Run: ninja -C build, then lit.py build/tests/lit (./dev test does both).
import os

import lit.formats

config.name = "transept"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.environment["PATH"] = os.pathsep.join(
    [config.transept_tools_dir, config.llvm_tools_dir, config.environment["PATH"]]
)
config.substitutions.append(("%transept-compile", os.path.join(config.transept_tools_dir, "transept-compile")))
