"""The bundled model: the answers of PyTorch, word by word, and its error rates on the whole test split.

tests/e2e/g2p holds what transformers' generate answered (samples.json: 20 words with ids, texts and beam scores; test.tsv:
all 12,563 test words with their references).
"""

import json
import os

from tool import expect, expect_success

SCORE_TOLERANCE = 1e-4
RATE_TOLERANCE = 0.02  # percentage points


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (x != y))
    return row[-1]


def compile_model(tool, root, tmp):
    artifact = os.path.join(tmp, "g2p.tsp")
    expect_success(tool.compile(os.path.join(root, "models/g2p"), artifact), "compile")
    return artifact


def check_samples(tool, root, artifact, modes=("greedy", "beam4")):
    with open(os.path.join(root, "tests/e2e/g2p/samples.json")) as file:
        reference = json.load(file)
    for mode in modes:
        settings, samples = reference["settings"][mode], reference["samples"]
        requests = "".join(json.dumps({"text": sample["text"], **settings}) + "\n" for sample in samples)
        result = tool.run("transept", "generate", artifact, stdin=requests)
        expect_success(result, mode)
        answers = [json.loads(line)["hypotheses"] for line in result.stdout.splitlines()]
        expect(len(answers) == len(samples), f"{len(answers)} answers for {len(samples)} words")
        for sample, hypotheses in zip(samples, answers):
            wanted = [sample["greedy"]] if mode == "greedy" else sample["beam4"]
            got = [(h["ids"], h["text"]) for h in hypotheses]
            expect(got == [(h["ids"], h["text"]) for h in wanted], f"{mode} {sample['text']}: {got}")
            for hypothesis, reference_hypothesis in zip(hypotheses, wanted):
                if "score" in reference_hypothesis:
                    difference = abs(hypothesis["score"] - reference_hypothesis["score"])
                    expect(difference <= SCORE_TOLERANCE, f"{mode} {sample['text']}: score differs by {difference:.2g}")


def check_error_rates(tool, root, tmp):
    artifact = compile_model(tool, root, tmp)
    with open(os.path.join(root, "tests/e2e/g2p/samples.json")) as file:
        figures = json.load(file)["test"]
    with open(os.path.join(root, "tests/e2e/g2p/test.tsv")) as file:
        rows = [line.rstrip("\n").split("\t") for line in file][1:]
    words = "".join(row[0] + "\n" for row in rows)
    for mode, flags in (("greedy", ["--num-beams", "1"]), ("beam4", ["--num-beams", "4", "--length-penalty", "0.6"])):
        result = tool.run("transept", "translate", artifact, "--batch", "32", "--max-new-tokens", "48", *flags, stdin=words, timeout=900)
        expect_success(result, mode)
        lines = result.stdout.splitlines()
        expect(len(lines) == len(rows), f"{mode}: {len(lines)} lines for {len(rows)} words")
        wrong = edits = phones = 0
        for line, row in zip(lines, rows):
            references = [reference.split() for reference in row[1].split(" | ")]
            distance, length = min(
                ((edit_distance(line.split(), reference), len(reference)) for reference in references),
                key=lambda pair: pair[0] / pair[1],
            )
            wrong, edits, phones = wrong + (distance > 0), edits + distance, phones + length
        for name, rate in (("wer_percent", 100 * wrong / len(rows)), ("per_percent", 100 * edits / phones)):
            expect(abs(rate - figures[mode][name]) <= RATE_TOLERANCE, f"{mode}: {name} {rate:.3f}, PyTorch {figures[mode][name]}")


def tests(tool, root):
    yield "pronunciation samples", lambda tmp: check_samples(tool, root, compile_model(tool, root, tmp))
    yield "pronunciation error rates", lambda tmp: check_error_rates(tool, root, tmp)
