"""What ds-run probe says of this machine and of the links between ranks: sane numbers, whatever else the machine does."""
import json
import re

from kit import case, expect, tool


def check(found, ranks, threads):
    expect([rank["rank"] for rank in found["ranks"]] == list(range(ranks)), f"expected {ranks} ranks: {found}")
    for rank in found["ranks"]:
        expect(rank["threads"] == threads, f"expected {threads} threads: {rank}")
        for key, low, high in (("stream_gbps", 0.05, 5000), ("f32_gflops", 0.1, 1e6), ("thread_stream_gbps", 0.05, 2000), ("thread_f32_gflops", 0.1, 1e4)):
            expect(low < rank[key] < high, f"{key}: {rank}")
    if ranks == 1:
        return expect(found["links"] is None, f"one process has no links: {found}")
    links = found["links"]
    expect(0.1 < links["latency_us"] < 1e6 and 1e-5 < links["rank_gbps"] < 5000, f"links: {links}")
    expect(links["bytes"] >= (ranks - 1) * 4 * 4096, f"links: {links}")


@case(seconds=6)
def of_one_process(folder):
    check(json.loads(tool("ds-run", "probe", "--threads=2", "--json").out), 1, 2)
    expect(tool("ds-run", "probe", f"--json={folder / 'one.json'}", "--threads=1").out == "", "expected the file alone")
    check(json.loads((folder / "one.json").read_text()), 1, 1)
    line = tool("ds-run", "probe", "--threads=1").out
    expect(re.fullmatch(r"rank 0: 1 threads, stream [\d.]+ GB/s, f32 \d+ GFLOP/s; one thread [\d.]+ GB/s, \d+ GFLOP/s\n", line), line)


@case(seconds=6)
def of_ranks(folder):
    for transport, ranks in (("shm", 3), ("tcp", 2)):
        file = folder / f"{transport}.json"
        tool("ds-run", f"--ranks={ranks}", f"--transport={transport}", "probe", "--threads=1", f"--json={file}")
        check(json.loads(file.read_text()), ranks, 1)
    text = tool("ds-run", "-n", 2, "probe", "--threads=1").out.splitlines()
    expect(len(text) == 3 and re.fullmatch(r"links: [\d.]+ us, [\d.]+ GB/s out of each rank", text[2]), f"{text}")


@case
def wrong_words(folder):
    for options, code, says in ((("probe", "--threads=0"), 2, "--threads"), (("probe", "--json="), 2, "--json=: expected a value, found none"),
                                (("probe", f"--json={folder / 'none/x.json'}", "--threads=1"), 1, "none/x.json"), (("probe", "m.dsp"), 2, "m.dsp"),
                                (("-n", 2, "bench", "m.dsp"), 2, "of ds-run PKG, train, eval and probe")):
        result = tool("ds-run", *options, code=code)
        expect(says in result.err and result.err.count("\n") == 1, f"{options}: expected '{says}': {result}")
