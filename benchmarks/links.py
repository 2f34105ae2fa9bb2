#!/usr/bin/env python3
"""Ranks behind links of one speed each: network namespaces on a bridge, inside of a network and mounts of this process.

usage: unshare -m -n links.py RANKS MBIT[,MBIT…] COMMAND...   {log} in the command is a file; prints a JSON of its rows for each speed
"""
import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

NETWORK, PORT = "10.81.0", 29611
# Packets of so many bytes pass links whole, as an adapter cuts them itself: the system would do that in time that ranks compute in. Bursts
# are no longer than two of them, since a link that was idle is faster than its speed by a burst.
WHOLE, BURST = 16384, "32kb"


def shell(text, **names):
    subprocess.run(text.format(**names).split(), check=True)


def build(ranks):
    """Namespaces n0, n1, …, as `ip netns` finds them."""
    os.makedirs("/run/netns", exist_ok=True)
    shell("mount -t tmpfs none /run/netns")
    shell("ip link set lo up")
    shell("ip link add hub type bridge")
    shell("ip link set hub up")
    for rank in range(ranks):
        shell("ip netns add n{rank}", rank=rank)
        shell("ip link add port{rank} type veth peer name eth0 netns n{rank}", rank=rank)
        shell("ip link set port{rank} master hub up", rank=rank)
        shell("ip link set port{rank} gso_max_size {whole}", rank=rank, whole=WHOLE)
        for line in ("lo up", f"eth0 up gso_max_size {WHOLE}"):
            shell("ip -n n{rank} link set " + line, rank=rank)
        shell("ip -n n{rank} addr add {network}.{host}/24 dev eth0", rank=rank, network=NETWORK, host=rank + 1)


def shape(ranks, mbit):
    """0: no limit but the machine's."""
    for rank in range(ranks):
        for start in (f"ip netns exec n{rank} tc qdisc replace dev eth0", f"tc qdisc replace dev port{rank}"):
            if mbit == 0:
                subprocess.run((start.replace("replace", "del") + " root").split(), stderr=subprocess.DEVNULL)
                continue
            shell(start + " root tbf rate {mbit}mbit burst " + BURST + " latency 100ms", mbit=mbit)


def run(ranks, port, command, output=sys.stderr):
    """Rank 0 finds the others at its address; each has the variables that ds-run gives to ranks."""
    started = []
    for rank in range(ranks):
        names = {"DS_RANK": rank, "DS_WORLD": ranks, "DS_LOCAL_RANK": rank, "DS_HOST": socket.gethostname(), "DS_TRANSPORT": "tcp",
                 "DS_RENDEZVOUS": f"{NETWORK}.1:{port}", "DS_TIMEOUT": 300}
        started.append(subprocess.Popen(["ip", "netns", "exec", f"n{rank}", *map(str, command)], stdout=output,
                                        env={**os.environ, **{name: str(value) for name, value in names.items()}}))
    if any([rank.wait() for rank in started]):
        raise SystemExit("a rank failed")


def main():
    ranks, speeds, command = int(sys.argv[1]), [int(text) for text in sys.argv[2].split(",")], sys.argv[3:]
    build(ranks)
    found = {}
    for number, mbit in enumerate(speeds):
        shape(ranks, mbit)
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder, "log.jsonl")
            run(ranks, PORT + number, [word.replace("{log}", str(log)) for word in command])
            found[mbit] = [json.loads(line) for line in log.read_text().splitlines()]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
