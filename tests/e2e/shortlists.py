"""Shortlists: the answers of a model that has no other tokens, whatever else is in a batch; and what is wrong with a file."""

import json
import os
import random
import shutil

import numpy
import onnx
from onnx import numpy_helper

from tool import expect, expect_error, expect_success

SETTINGS = (
    {},
    {"num_beams": 4, "num_return_sequences": 2},
    {"return_token_scores": True, "repetition_penalty": 1.3},
    {"do_sample": True, "seed": 4},
    {"num_beams": 3, "search": "tensor2tensor"},
)
SCORE_TOLERANCE = 1e-4


def model_without(source, target, allowed):
    """Their logits become -infinity."""
    shutil.copytree(source, target)
    for name in os.listdir(target):
        if name.endswith(".onnx"):
            model = onnx.load(os.path.join(target, name))
            for tensor in model.graph.initializer:
                if tensor.name.startswith("final_logits_bias"):
                    bias = numpy_helper.to_array(tensor).copy()
                    bias[:, [token for token in range(bias.shape[1]) if token not in allowed]] = -numpy.inf
                    tensor.CopyFrom(numpy_helper.from_array(bias, tensor.name))
            onnx.save(model, os.path.join(target, name))


def answers(tool, artifact, lines, *flags):
    result = tool.run("transept", "generate", artifact, "--threads", "1", *flags, stdin=lines)
    expect_success(result, "generate")
    return [json.loads(line) for line in result.stdout.splitlines()]


def requests():
    draw = random.Random(8)
    for i in range(30):
        ids = [draw.randrange(3, 250) for _ in range(draw.randint(1, 10))]
        yield {"id": i, "input_ids": ids, "num_beams": 1, "max_new_tokens": 16, **SETTINGS[i % len(SETTINGS)]}


def same_as_model_without(tool, root, tmp):
    model = os.path.join(root, "tests/models/marian-tiny")
    plain, small, listed = (os.path.join(tmp, name) for name in ("plain.tsp", "small.tsp", "list.txt"))
    expect_success(tool.compile(model, plain, "--two-stage-vocabulary"), "compile")
    always = list(range(4, 273, 6))
    model_without(model, os.path.join(tmp, "export"), {0, *always})
    expect_success(tool.compile(os.path.join(tmp, "export"), small), "compile")
    with open(listed, "w") as file:
        file.write("\t" + " ".join(map(str, always)) + "\n")
    lines = "".join(json.dumps(request) + "\n" for request in requests())
    asked = "".join(json.dumps({**request, "allowed_token_ids": always}) + "\n" for request in requests())
    want = answers(tool, small, lines, "--batch", "1")
    got = answers(tool, plain, lines, "--batch", "1", "--shortlist", listed)
    for a, b in zip(got, want, strict=True):
        for one, other in zip(a["hypotheses"], b["hypotheses"], strict=True):
            expect(one["ids"] == other["ids"], f"{a['id']}: {one['ids']}, without the others {other['ids']}")
            if one["score"] is not None:
                expect(abs(one["score"] - other["score"]) <= SCORE_TOLERANCE, f"{a['id']}: scores {one['score']}, {other['score']}")
    expect(answers(tool, plain, asked, "--batch", "1") == got, "a list in the request answers otherwise")


def own_candidates(tool, root, tmp):
    """Each source has candidates of its own, in any batch."""
    model = os.path.join(root, "tests/models/marian-tiny")
    artifact, listed = os.path.join(tmp, "m.tsp"), os.path.join(tmp, "list.txt")
    expect_success(tool.compile(model, artifact), "compile")
    draw = random.Random(2)
    entries = {(source,): draw.sample(range(4, 270), 5) for source in range(3, 250)}
    entries[()] = [7, 8]
    with open(listed, "w") as file:
        for source, targets in entries.items():
            file.write(" ".join(map(str, source)) + "\t" + " ".join(map(str, targets)) + "\n")
    lines = "".join(json.dumps(request) + "\n" for request in requests())
    alone = answers(tool, artifact, lines, "--batch", "1", "--shortlist", listed)
    for batch in ("7", "32"):
        flags = ("--batch", batch, "--shortlist", listed)
        expect(answers(tool, artifact, lines, *flags) == alone, f"batch {batch}: other answers")
    for request, answer in zip(requests(), alone, strict=True):
        allowed = {0, 272, *entries[()]}.union(*(entries[(source,)] for source in request["input_ids"]))
        for hypothesis in answer["hypotheses"]:
            expect(set(hypothesis["ids"]) <= allowed, f"{request['id']}: {hypothesis['ids']}")
    text = tool.run("transept", "translate", artifact, "--shortlist", listed, stdin="hello\n")
    expect_success(text, "translate")


def entries_of(trace):
    with open(trace) as file:
        return {span["args"]["entry"] for span in json.load(file)["traceEvents"] if span.get("cat") == "kernel"}


def listed_steps(tool, root, tmp):
    """Steps of requests with lists compute the logits of these tokens alone, with the bits of all."""
    draw = random.Random(3)
    for model in ("marian-tiny", "gpt2-tiny"):
        artifact, trace = os.path.join(tmp, model + ".tsp"), os.path.join(tmp, "trace.json")
        expect_success(tool.compile(os.path.join(root, "tests/models", model), artifact), "compile")
        lists = [sorted(draw.sample(range(4, 250), 20)) for _ in range(30)]
        wanted = [{**request, "allowed_token_ids": lists[request["id"]], "return_token_scores": True} for request in requests()]
        anything = {"id": 99, "input_ids": [5, 6, 7], "min_new_tokens": 60, "max_new_tokens": 60}
        text = "".join(json.dumps(request) + "\n" for request in wanted)
        together = answers(tool, artifact, text, "--batch", "4", "--trace", trace)
        expect("step_listed" in entries_of(trace) and "step" not in entries_of(trace), f"{model}: {entries_of(trace)}")
        # Ninety tokens and more are not listed; those of one request are again.
        expect(answers(tool, artifact, text, "--batch", "16") == together, f"{model}: other answers in a larger batch")
        for request, answer in zip(wanted[:8], together[:8], strict=True):
            pair = json.dumps(request) + "\n" + json.dumps(anything) + "\n"
            whole = answers(tool, artifact, pair, "--batch", "2", "--trace", trace)
            expect("step" in entries_of(trace), f"{model}: {entries_of(trace)}")
            expect(whole[0] == answer, f"{model}: {whole[0]}, with all logits {answer}")


def refusals(tool, root, tmp):
    artifact, decoder, listed = (os.path.join(tmp, name) for name in ("m.tsp", "d.tsp", "list.txt"))
    expect_success(tool.compile(os.path.join(root, "tests/models/marian-tiny"), artifact), "compile")
    expect_success(tool.compile(os.path.join(root, "tests/models/gpt2-tiny"), decoder), "compile")
    request = '{"input_ids": [5, 6]}\n'

    def refused(text, code, *words, model=artifact):
        with open(listed, "w") as file:
            file.write(text)
        expect_error(tool.run("transept", "generate", model, "--shortlist", listed, stdin=request), code, *words)

    refused("5\t6 7\n5 six\n", 8, listed, "line 2", "tab")
    refused("\t1 2\n5\t6 273\n", 8, listed, "line 2", "273")
    refused("5\t6\n", 8, "--shortlist", "encoder", model=decoder)
    expect_error(tool.run("transept", "generate", artifact, "--shortlist", os.path.join(tmp, "none"), stdin=request), 6, "none")
    outside = '{"input_ids": [5], "allowed_token_ids": [273]}\n'
    expect_error(tool.run("transept", "generate", artifact, stdin=outside), 8, "allowed_token_ids", "273")


def tests(tool, root):
    yield "shortlist and a model without the others", lambda tmp: same_as_model_without(tool, root, tmp)
    yield "shortlist of each source", lambda tmp: own_candidates(tool, root, tmp)
    yield "shortlist and steps of listed tokens", lambda tmp: listed_steps(tool, root, tmp)
    yield "shortlist refusals", lambda tmp: refusals(tool, root, tmp)
