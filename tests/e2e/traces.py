"""--trace: when which kernel ran, on which thread or device."""

import json
import os

from tool import expect, expect_error, expect_success

REQUEST = '{"input_ids": [5, 6, 7, 2], "max_new_tokens": 5, "min_new_tokens": 5}\n'


def spans_of(path):
    """Complete events by the name of their track, and how many were left out."""
    with open(path, encoding="utf-8") as file:
        trace = json.load(file)
    names = {event["tid"]: event["args"]["name"] for event in trace["traceEvents"] if event["ph"] == "M"}
    tracks = {name: [] for name in names.values()}
    for event in trace["traceEvents"]:
        if event["ph"] == "X":
            tracks[names[event["tid"]]].append(event)
    return tracks, trace["otherData"]["dropped_spans"]


def check_trace(tool, root, tmp, device, threads):
    artifact, path = os.path.join(tmp, "m.tsp"), os.path.join(tmp, "trace.json")
    expect_success(tool.compile(os.path.join(root, "tests/models/marian-tiny"), artifact, "--target", "cpu,vulkan", "--cpu-levels", "x86-64"), "compile")
    expect_success(tool.run("transept", "generate", artifact, "--device", device, "--threads", threads, "--trace", path, stdin=REQUEST), "generate")
    tracks, dropped = spans_of(path)
    expect(dropped == 0 and len(tracks) == threads, f"{dropped} spans dropped, tracks {list(tracks)}")
    inspected = json.loads(tool.run("transept", "inspect", artifact, "--plan", "--kernels", "--json").stdout)
    dispatches = {entry["name"]: entry["dispatches"] for entry in inspected["entries"]}
    kernels = {kernel["name"]: kernel["source"] for kernel in inspected["kernels"]}
    steps = [event for spans in tracks.values() for event in spans if event["args"]["entry"] == "step"]
    begun = {event["ts"] for event in steps}
    expect(len(begun) >= 5 * dispatches["step"], f"{len(begun)} dispatches in 5 steps of {dispatches['step']}")
    for spans in tracks.values():
        spans.sort(key=lambda event: event["ts"])
        for event in spans:
            expect(event["dur"] >= 0 and event["args"]["items"] > 0, f"{event}")
            expect(kernels.get(event["name"]) == event["args"]["nodes"], f"{event['name']} is of {event['args']['nodes']}")
        if device == "cpu":  # a thread does one thing at a time
            for before, after in zip(spans, spans[1:]):
                expect(before["ts"] + before["dur"] <= after["ts"] + 0.001, f"{before} and {after} overlap")
    lost = os.path.join(tmp, "nowhere", "trace.json")
    expect_error(tool.run("transept", "generate", artifact, "--device", device, "--trace", lost, stdin=REQUEST), 6, "nowhere")
    expect_success(tool.run("transept", "generate", artifact, stdin=REQUEST), "without a trace")


def tests(tool, root):
    yield "trace cpu", lambda tmp: check_trace(tool, root, tmp, "cpu", 1)
    yield "trace vulkan", lambda tmp: check_trace(tool, root, tmp, "vulkan:0", 1)
