#!/usr/bin/env python3
"""Measures one row of the table in docs/performance.md: Transept and its peers in turns, in one run."""
import argparse
import datetime
import json
import os
import pathlib
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROWS = {  # name: batch, beams, source tokens, output tokens (0: the encoder only), peers
    "batch-1-greedy": (1, 1, 32, 64, ["onnxruntime", "ctranslate2"]),
    "batch-1-beam-4": (1, 4, 32, 64, ["ctranslate2"]),
    "batch-32-greedy": (32, 1, 32, 64, ["onnxruntime", "ctranslate2"]),
    "batch-32-beam-4": (32, 4, 32, 64, ["ctranslate2"]),
    "encoder-512": (1, 1, 512, 0, ["onnxruntime"]),
}
BUSY_CORES = 0.15  # of others: a turn during which they used more is repeated
DRIFT = 0.05       # of the calibration over a block: a block that moved more is repeated
TICK = os.sysconf("SC_CLK_TCK")


def busy_seconds():
    """Seconds all cores have spent on anything, other guests included, since the machine started."""
    user, nice, system, _, _, irq, softirq, steal = map(int, open("/proc/stat").readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / TICK


def process_seconds(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def wait_for_quiet(limit, seconds):
    """Waits until others use fewer than BUSY_CORES and the load is below `limit`, or for `seconds`."""
    end = time.monotonic() + seconds
    while True:
        before, begin = busy_seconds(), time.monotonic()
        time.sleep(2)
        cores = (busy_seconds() - before) / (time.monotonic() - begin)
        if (cores < BUSY_CORES and os.getloadavg()[0] < limit) or time.monotonic() > end:
            return


def cpus(threads):
    return sorted(os.sched_getaffinity(0))[-threads:]


def pinned(command, threads):
    return ["taskset", "-c", ",".join(map(str, cpus(threads))), *map(str, command)]


class Ours:
    """A process for each turn: one call that is not counted, then one that is."""

    def __init__(self, args, row, threads):
        self.name, self.threads = "transept", threads
        batch, beams, source, tokens, _ = row
        tool = args.bin / "transept"
        self.info = {"version": subprocess.check_output([tool, "--version"], text=True).split()[1]}
        work = ["--batch", batch, "--num-beams", beams, "--source", source, "--tokens", tokens]
        if not tokens:
            work = ["--entry", "encode", "--input", f"input_ids={[[1 + i for i in range(source)]]}",
                    "--input", f"attention_mask={[[1] * source]}"]
        self.command = pinned([tool, "bench", args.model / "base.tsp", "--threads", threads, "--warmup", 1, "--repeat",
                               1, "--json", *work], threads)
        self.tokens = batch * (tokens or source)
        start = pinned([tool, "bench", args.model / "base.tsp", "--threads", threads, "--source", 1, "--tokens", 1,
                        "--warmup", 0, "--repeat", 1], threads)
        self.calls, self.start_cpu = 2, float("inf")
        for _ in range(5):  # the least of them: what is left for the calls is rather too much than too little
            before = self.cpu_seconds()
            subprocess.run(start, check=True, stdout=subprocess.DEVNULL)
            self.start_cpu = min(self.start_cpu, self.cpu_seconds() - before)

    def cpu_seconds(self):
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    def call(self):
        result = json.loads(subprocess.check_output(self.command, text=True))
        self.info |= {k: result[k] for k in ("level", "weight_bytes", "reserved_bytes")}
        if result.get("tokens", self.tokens) != self.tokens:
            sys.exit(f"{self.name}: {result['tokens']} tokens instead of {self.tokens}")
        return result["milliseconds"]["best"] / 1e3

    def close(self):
        pass


class Peer:
    """A process for the whole block; its first call is not counted."""

    def __init__(self, args, row, peer, threads, environment):
        self.name = " ".join([peer, *(f"{k}={v}" for k, v in environment.items())])
        self.threads = threads
        batch, beams, source, tokens, _ = row
        command = [sys.executable, HERE / "peers.py", peer, "--model", args.model, "--threads", threads,
                   "--batch", batch, "--beams", beams, "--source", source, "--tokens", tokens]
        command += [] if tokens else ["--encoder"]
        self.tokens = batch * (tokens or source)
        clean = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
        self.process = subprocess.Popen(pinned(command, threads), env=clean | environment, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.info = json.loads(self.process.stdout.readline())
        self.calls, self.start_cpu = 1, 0
        self.call()

    def cpu_seconds(self):
        return process_seconds(self.process.pid)

    def call(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        result = json.loads(self.process.stdout.readline())
        if result["tokens"] != self.tokens:
            sys.exit(f"{self.name}: {result['tokens']} tokens instead of {self.tokens}")
        return result["seconds"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def turn(contender, args):
    """One timed call, again while others are busy; the quietest one counts, whatever its time."""
    tries = []
    for _ in range(args.tries):
        busy, own, begin = busy_seconds(), contender.cpu_seconds(), time.monotonic()
        seconds = contender.call()
        own = contender.cpu_seconds() - own
        others = (busy_seconds() - busy - own) / (time.monotonic() - begin)
        tries.append((max(0.0, others), seconds, (own - contender.start_cpu) / contender.calls))
        if tries[-1][0] < BUSY_CORES:
            break
        wait_for_quiet(99, args.wait / 10)
    return min(tries)


def calibrate(program, threads):
    return json.loads(subprocess.check_output(pinned([program, max(threads)], max(threads)), text=True))


def block(args, row, program):
    contenders = [Ours(args, row, t) for t in args.threads]
    for peer in row[4]:
        settings = [{"CT2_USE_MKL": "0"}, {"CT2_USE_MKL": "1"}] if peer == "ctranslate2" else [{}]
        if "avx512f" in open("/proc/cpuinfo").read():
            settings = [e | {"CT2_FORCE_CPU_ISA": "AVX512"} if e else e for e in settings]
        contenders += [Peer(args, row, peer, t, e) for e in settings for t in args.threads]
    wait_for_quiet(args.max_load, args.wait)
    load = [os.getloadavg()[0]]
    calibration = [calibrate(program, args.threads)]
    samples = [[] for _ in contenders]
    for _ in range(args.rounds):
        for contender, list_ in zip(contenders, samples):
            list_.append(turn(contender, args))
            time.sleep(0.3)  # idle threads of the last one stop spinning after 0.2 s
    wait_for_quiet(99, args.wait / 10)
    calibration.append(calibrate(program, args.threads))
    load.append(os.getloadavg()[0])
    results = []
    for contender, list_ in zip(contenders, samples):
        contender.close()
        times = [t[1] for t in list_]
        results.append({"name": contender.name, "threads": contender.threads, "seconds": times,
                        "others_cores": [round(t[0], 3) for t in list_], "best": contender.tokens / min(times),
                        "median": contender.tokens / statistics.median(times),
                        "cpu_seconds": statistics.median(t[2] for t in list_), **contender.info})
    before, after = calibration
    drift = max(abs(after[k] / before[k] - 1) for k in before)
    return {"calibration": calibration, "load": load, "drift": drift, "results": results}


def markdown(report):
    encoder = report["row"] == "encoder-512"
    unit = "ms" if encoder else "tok/s"
    lines = [f"### {report['row']}", "",
             f"| | threads | median {unit} | best {unit} | processor s per call | others, cores |",
             "|---|---|---|---|---|---|"]
    shown = report["block"]
    for r in shown["results"]:
        median, best, others = r["median"], r["best"], r["others_cores"]
        if encoder:
            median, best = 1e3 * statistics.median(r["seconds"]), 1e3 * min(r["seconds"])
        lines.append(f"| {r['name']} {r['version']} | {r['threads']} | {median:.1f} | {best:.1f} | "
                     f"{r['cpu_seconds']:.2f} | {statistics.median(others):.2f}, at most {max(others):.2f} |")
    lines.append("")
    for peer, ratio in report["ratio"].items():
        lines.append(f"transept ÷ {peer}, medians, best setting of each: {ratio:.2f}.")
    for when, c, load in zip(("before", "after"), shown["calibration"], shown["load"]):
        lines.append(f"Calibration {when}: {c['gflops']:.0f} GFLOP/s, {c['gbytes_per_s']:.1f} GB/s; load {load:.2f}.")
    moved = f"moved {100 * shown['drift']:.0f} %" + (" (too much)" if shown["drift"] > DRIFT else "")
    lines.append(f"Calibration {moved}; block {report['blocks']} of at most {report['attempts']}; "
                 f"{report['date']}; {report['cpu']}.")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("row", choices=ROWS)
    parser.add_argument("--model", type=pathlib.Path, required=True, help="folder of export_random.py, and base.tsp")
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of the program transept")
    parser.add_argument("--threads", type=lambda s: [int(t) for t in s.split(",")], default=[1, 2])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--attempts", type=int, default=2, help="blocks at most, while the calibration moves")
    parser.add_argument("--tries", type=int, default=3, help="of one call, while others are busy")
    parser.add_argument("--max-load", type=float, default=1.5, help="wait until the load is below this")
    parser.add_argument("--wait", type=float, default=180, help="for quiet, seconds at most")
    parser.add_argument("--out", type=pathlib.Path, help="write OUT.json and OUT.md; default: Markdown is printed")
    args = parser.parse_args()
    if max(args.threads) > len(os.sched_getaffinity(0)):
        parser.error("more threads than cores")
    lines = [line.split(":", 1) for line in open("/proc/cpuinfo") if ":" in line]
    info = {k.strip(): v.strip() for k, v in lines}
    blocks = []
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "calibrate"
        flags = ["-O3", "-march=native", "-ffp-contract=fast", "-pthread"]
        subprocess.run(["cc", *flags, HERE / "calibrate.c", "-o", program], check=True)
        while len(blocks) < args.attempts and (not blocks or blocks[-1]["drift"] > DRIFT):
            blocks.append(block(args, ROWS[args.row], program))
    shown = min(blocks, key=lambda b: b["drift"])
    best = {}
    for r in shown["results"]:
        name = r["name"].split()[0]
        best[name] = max(best.get(name, 0), r["median"])
    report = {"row": args.row, "date": datetime.date.today().isoformat(),
              "cpu": f"{info.get('model name')} (family {info.get('cpu family')}, model {info.get('model')}), "
                     f"{len(os.sched_getaffinity(0))} cores",
              "features": sorted(f for f in info.get("flags", "").split() if f.startswith(("avx", "fma", "amx"))),
              "python": platform.python_version(), "kernel": platform.release(), "threads": args.threads,
              "rounds": args.rounds, "attempts": args.attempts, "blocks": len(blocks), "block": shown, "all": blocks,
              "ratio": {k: best["transept"] / v for k, v in best.items() if k != "transept"}}
    text = markdown(report)
    if args.out:
        args.out.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")
        args.out.with_suffix(".md").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
