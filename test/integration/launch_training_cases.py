"""What is signalled to the launcher of a training: ranks end after the same step, and go on from there."""
import re
import signal

from kit import case, expect
from launch_runs import PATIENCE, children, environment, gone, launch, running, until
from training_runs import log_of, same_state, settings, small_data, small_package


@case(seconds=5)
def an_interrupted_training_goes_on(folder):
    package, data = small_package(folder, settings("AdamW", accumulation=2)), small_data(folder)
    train = ["train", package, f"--data={data}", "--seed=5"]
    launch("-n", 3, *train, "--steps=2000", f"--checkpoint={folder / 'whole'}")
    log = folder / "log.jsonl"
    for number, transport, code in ((signal.SIGINT, "shm", 130), (signal.SIGTERM, "tcp", 143)):
        before = log.stat().st_size if log.exists() else 0
        resume = ["--resume"] if before else []
        with running("-n", 3, f"--transport={transport}", *train, "--steps=100000000", f"--checkpoint={folder / 'parts'}", f"--log={log}", *resume,
                     env=environment()) as child:
            until(lambda: log.exists() and log.stat().st_size > before, "a step")
            ranks = children(child.pid)
            child.send_signal(number)
            _, err = child.communicate(timeout=PATIENCE)
            gone(ranks)
        said = re.findall(r"^ds-run: interrupted after step (\d+); --resume goes on from there$", err, re.M)
        expect(child.returncode == code and len(said) == 1, f"exit code {child.returncode}: {err}")
        tag = (folder / "parts/latest").read_text().strip()
        expect(tag == f"global_step{int(said[0]) + 1}" and log_of(log)[-1]["step"] == int(said[0]), f"{tag}: {err}")
    last = int(said[0]) + 1
    expect(last < 2000, f"{last} steps were done before a signal came")
    launch("-n", 3, *train, "--steps=2000", f"--checkpoint={folder / 'parts'}", "--resume")
    same_state(folder / "whole", folder / "parts", 2000)
