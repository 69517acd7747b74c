"""Programs in bf16 and with 8-bit weights: how far from fp32, the same bits however they run, and what the compiler says of it."""

import json
import os

from pronunciation import edit_distance
from tool import expect, expect_error, expect_success, read

MODES = ("bf16", "int8", "int8-weights")
# Percentage points of words with an error, and of words whose output is that of fp32.
RATE_TOLERANCE = 0.3
LEAST_AGREEMENT = {"bf16": 99.0, "int8": 98.0, "int8-weights": 99.0}


def compiled(tool, root, tmp, mode, *flags):
    artifact = os.path.join(tmp, mode + ".tsp")
    expect_success(tool.compile(os.path.join(root, "models/g2p"), artifact, "--precision", mode, *flags), "compile")
    return artifact


def test_rows(root):
    with open(os.path.join(root, "tests/e2e/g2p/test.tsv")) as file:
        return [line.rstrip("\n").split("\t") for line in file][1:]


def translated(tool, artifact, words):
    text = "".join(word + "\n" for word in words)
    result = tool.run("transept", "translate", artifact, "--batch", "32", "--max-new-tokens", "48", "--num-beams", "1", stdin=text, timeout=900)
    expect_success(result, "translate")
    lines = result.stdout.splitlines()
    expect(len(lines) == len(words), f"{len(lines)} lines for {len(words)} words")
    return lines


def error_rates(tool, root, tmp):
    """All words of the test split, in every precision."""
    rows = test_rows(root)
    words = [row[0] for row in rows]
    exact = translated(tool, compiled(tool, root, tmp, "fp32"), words)

    def rate(lines):
        wrong = sum(all(edit_distance(line.split(), reference.split()) for reference in row[1].split(" | ")) for line, row in zip(lines, rows))
        return 100 * wrong / len(rows)

    for mode in MODES:
        lines = translated(tool, compiled(tool, root, tmp, mode), words)
        agreement = 100 * sum(a == b for a, b in zip(lines, exact)) / len(rows)
        change = rate(lines) - rate(exact)
        expect(abs(change) <= RATE_TOLERANCE, f"{mode}: the word error rate changes by {change:.3f} points")
        expect(agreement >= LEAST_AGREEMENT[mode], f"{mode}: {agreement:.2f} % of the outputs are those of fp32")


def same_bits(tool, root, tmp, mode, levels):
    """Answers with scores, alone and together, with one thread and two, and on every level that multiplies alike."""
    artifact = compiled(tool, root, tmp, mode)
    words = [row[0] for row in test_rows(root)[:: 600]]
    requests = "".join(json.dumps({"text": word, "num_beams": 4, "num_return_sequences": 2}) + "\n" for word in words)
    answers = {}
    for level in levels:
        for batch, threads in ((1, 1), (7, 1), (64, 2)):
            result = tool.run("transept", "generate", artifact, "--cpu", level, "--batch", batch, "--threads", threads, stdin=requests)
            if result.returncode == 7:
                continue  # this machine lacks the level
            expect_success(result, level)
            answers[level, batch, threads] = result.stdout
    expect(len(answers) >= 3, "ran on no level")
    expect(len(set(answers.values())) == 1, f"{mode}: answers differ between {[key for key in answers]}")


def accuracy(tool, root, tmp):
    """What the compiler measures, and when it refuses."""
    source, out, report = os.path.join(root, "models/g2p"), os.path.join(tmp, "m.tsp"), os.path.join(tmp, "report.json")
    inputs = os.path.join(tmp, "words.txt")
    with open(inputs, "w") as file:
        file.writelines(row[0] + "\n" for row in test_rows(root)[::400])
        file.write(json.dumps({"text": "encoder", "target": "EH N K OW D ER"}) + "\n")
        file.write(json.dumps({"text": "nave", "target": "N EY V"}) + "\n")

    def measured(*flags):
        expect_success(tool.compile(source, out, "--cpu-levels", "avx2", "--accuracy", inputs, "--report", report, *flags), " ".join(flags))
        with open(report) as file:
            return json.load(file)

    int8 = measured("--precision", "int8")
    page = int8["accuracy"]
    expect(page["inputs"] == 34 and page["tokens"] > 200, f"measured {page}")
    expect(0 < page["mean_divergence"] < 0.01, f"diverges by {page['mean_divergence']}")
    expect(page["same_tokens"] >= 0.98 * page["tokens"], f"measured {page}")
    texts = page["targets"]
    expect(texts["texts"] == 2 and texts["fp32"]["word_error_rate"] == texts["narrow"]["word_error_rate"] <= 0.25, f"measured {texts}")
    expect(int8["quantisation"]["narrow"] == int8["quantisation"]["weights"] > 10, f"narrowed {int8['quantisation']}")
    expect(int8["quantisation"]["bytes_narrow"] < 0.3 * int8["quantisation"]["bytes_fp32"], f"narrowed {int8['quantisation']}")
    expect(measured("--precision", "bf16")["accuracy"]["mean_divergence"] < page["mean_divergence"], "bf16 diverges further than int8")

    # With everything kept, nothing differs.
    kept = measured("--precision", "int8", "--keep-fp32", "*")
    expect(kept["accuracy"]["max_divergence"] == 0 and kept["accuracy"]["same_outputs"] == 34, f"measured {kept['accuracy']}")
    expect(kept["quantisation"]["narrow"] == 0, f"narrowed {kept['quantisation']}")
    some = measured("--precision", "int8", "--keep-fp32", "*decoder*")
    expect(0 < some["quantisation"]["narrow"] < int8["quantisation"]["narrow"], f"narrowed {some['quantisation']}")

    before = read(out)
    refused = tool.compile(source, out, "--precision", "int8", "--accuracy", inputs, "--max-loss", "0", "--cpu-levels", "avx2")
    expect_error(refused, 5, "diverges", "--max-loss")
    expect(read(out) == before, "a refused artifact replaced the old one")
    expect(os.listdir(tmp).count("m.tsp") == 1 and len(os.listdir(tmp)) == 3, f"left {os.listdir(tmp)}")
    expect_error(tool.compile(source, out, "--accuracy", inputs), 2, "--accuracy")
    expect_error(tool.compile(source, out, "--precision", "int8", "--max-loss", "1"), 2, "--max-loss")
    expect_error(tool.compile(source, out, "--precision", "int8", "--keep-fp32", "*no-such-node*"), 2, "*no-such-node*")
    expect_error(tool.compile(source, out, "--precision", "int8", "--keep-fp32", "[z"), 2, "[z", "malformed")
    expect_error(tool.compile(source, out, "--keep-fp32", "*"), 2, "--keep-fp32")
    expect_error(tool.compile(source, out, "--cpu-levels", "avx512vnni,avx2"), 4, "avx512vnni", "no use")
    expect_error(tool.compile(source, out, "--precision", "int8", "--accuracy", os.path.join(tmp, "none")), 6, "none")
    expect(read(out) == before, "a failed compilation replaced the old artifact")


def described(tool, root, tmp):
    sizes = {}
    for mode in ("fp32",) + MODES:
        result = tool.run("transept", "inspect", compiled(tool, root, tmp, mode, "--cpu-levels", "avx2"), "--json")
        expect_success(result, mode)
        page = json.loads(result.stdout)
        expect(page["precision"] == mode, f"{mode}: says {page['precision']}")
        sizes[mode] = page["weight_bytes"]
    # The embedding tables stay as they are.
    expect(sizes["int8"] == sizes["int8-weights"] < sizes["bf16"] < sizes["fp32"], f"sizes are {sizes}")


def caches(tool, root, tmp):
    """Keys and values in bf16: half the memory, the same bits however they run, and answers that hardly differ."""
    words = [row[0] for row in test_rows(root)[::40]]
    exact = translated(tool, compiled(tool, root, tmp, "fp32"), words)
    pages, artifacts = {}, {}
    for mode, flags in (("fp32", ()), ("bf16", ("--caches", "bf16"))):
        artifacts[mode] = os.path.join(tmp, f"caches-{mode}.tsp")
        expect_success(tool.compile(os.path.join(root, "models/g2p"), artifacts[mode], *flags), mode)
        result = tool.run("transept", "inspect", artifacts[mode], "--plan", "--json")
        expect_success(result, mode)
        pages[mode] = json.loads(result.stdout)
    answers = set()
    for level, batch, threads in (("avx512", 1, 1), ("avx512", 32, 2), ("avx2", 1, 1), ("avx2", 7, 2)):
        requests = "".join(json.dumps({"text": word, "num_beams": 4}) + "\n" for word in words[::20])
        result = tool.run(
            "transept", "generate", artifacts["bf16"], "--cpu", level, "--batch", batch, "--threads", threads, stdin=requests
        )
        if result.returncode == 7:
            continue  # this machine lacks the level
        expect_success(result, level)
        answers.add(result.stdout)
    expect(len(answers) == 1, f"{len(answers)} different answers")
    lines = translated(tool, artifacts["bf16"], words)
    same = sum(a == b for a, b in zip(lines, exact))
    expect(same >= 0.99 * len(words), f"{same} of {len(words)} outputs are those of fp32")
    # Products round what they write: nothing is computed in between.
    dispatches = [{entry["name"]: entry["dispatches"] for entry in page["entries"]} for page in pages.values()]
    expect(dispatches[0] == dispatches[1], f"dispatches are {dispatches}")
    for which, other in (("self_per_beam_and_token", 0), ("cross_per_source_token", 8)):  # the mask
        wide, narrow = (pages[mode]["caches"][which]["bytes"] - other for mode in ("fp32", "bf16"))
        expect(narrow > 0 and wide == 2 * narrow, f"{which}: {wide} and {narrow} bytes")

    source, out = os.path.join(root, "models/g2p"), os.path.join(tmp, "no.tsp")
    expect_error(tool.compile(source, out, "--caches", "fp8"), 2, "fp8", "fp32, bf16")
    expect_error(tool.compile(source, out, "--caches", "bf16", "--target", "cpu,vulkan"), 2, "--caches", "cpu")


def tests(tool, root):
    yield "precisions error rates", lambda tmp: error_rates(tool, root, tmp)
    # Attention and norms have the same bits on levels that fuse multiply-adds; integer sums have them everywhere.
    fused = ("avx512vnni", "avx512bf16", "avx512", "avx2")
    yield "precisions same bits int8", lambda tmp: same_bits(tool, root, tmp, "int8", fused)
    yield "precisions same bits int8-weights", lambda tmp: same_bits(tool, root, tmp, "int8-weights", fused)
    # Where one instruction multiplies pairs of bf16, its bits are its own.
    for level in ("avx512bf16", "avx2", "x86-64"):
        yield f"precisions same bits bf16 {level}", lambda tmp, level=level: same_bits(tool, root, tmp, "bf16", (level,))
    yield "precisions accuracy", lambda tmp: accuracy(tool, root, tmp)
    yield "precisions caches", lambda tmp: caches(tool, root, tmp)
    yield "precisions described", lambda tmp: described(tool, root, tmp)
