"""run.py [GROUP]... [--only TEST]: the kernel tests. Boots the bed once per group and runs that group's tests inside; without a
GROUP all of them.

Each prints `ok NAME` or `not ok NAME: why`. Logs of the guests' kernels go to .build/checks.
"""

import argparse
import os
import re
import shutil
import sys

import captures
from bed import ROOT, Bed, BedError

BLESCAN = ROOT / ".build" / "release" / "blescan"
BUNDLE = ROOT / ".build" / "debug" / "BareBLEPackageTests.xctest"
LOGGER = ROOT / ".build" / "debug" / "heart-rate-logger"
LISTENER = ROOT / ".build" / "debug" / "advertisement-logger"
RECOVER = ROOT / ".build" / "release" / "bareble-recover"
TRIALS = ROOT / ".build" / "debug" / "link-trials"
PAIRING = ROOT / ".build" / "debug" / "pairing-trials"
READER = ROOT / ".build" / "debug" / "lock-reader"
WALK = ROOT / ".build" / "debug" / "corebluetooth-walk"
SCANNERS = tuple(ROOT / ".build" / "debug" / name for name in ("corebluetooth-scanner", "corebluetooth-dispatch-scanner"))
SUITES = r"\.Kernel[A-Za-z]*Tests"  # the Swift tests that need real adapters, each to itself
LOGS = ROOT / ".build" / "checks"
# What runs on which radio, with how many controllers. Few boots: starting the guest takes longer than most tests, so a group may have
# modules of tests before the one that has its name.
GROUPS = {
    "extended": ("extended", 2, ("pulse", "second", "lighthouse", "beacon")),
    "legacy": ("legacy", 2, ("pulse", "courier")),
    "doctor": ("extended", 2, ("pulse",)),
    "daemon": ("extended", 1, ("belt", "crowd")),
    "dual": ("dual", 2, ()),
    "recovery": ("extended", 1, ("belt", "crowd", "lock")),
    "pairing": ("extended", 1, ("lock",)),
    "centrals": ("extended", 2, ("caller", "crowd")),
    "corebluetooth": ("extended", 2, ("belt", "caller")),
}
# The programs that a group needs, where it does not need all of them.
PROGRAMS = {"pairing": (PAIRING, BLESCAN, READER), "centrals": (BLESCAN, TRIALS), "corebluetooth": (WALK, *SCANNERS, BLESCAN, TRIALS),
            "recovery": (BLESCAN, LOGGER, TRIALS, PAIRING)}
# Their guests have all files in memory, which a sleep leaves as they are.
SLEEPING = ("recovery",)
# With one processor at a time, two connects of one run ended in `busy` there: who reacts to an event may be ahead of the kernel itself.
HOST_TIME = ("legacy",)
ALL = ("6.12", "6.1", "7.2")
BEFORE = {
    "extended": ("scan", "screen", "record", "rights", "serving"), "legacy": ("serving",), "doctor": ("systemd", "selftest"),
    "pairing": ("bonded",)}


def kernels(text):
    return ALL if text == "all" else tuple(text.replace(",", " ").split())


def needed(name):
    """Returns the programs that a group needs."""
    return PROGRAMS.get(name, (BLESCAN, BUNDLE, LOGGER, LISTENER, RECOVER, TRIALS))


def run_group(bed, name, only, cycles, series=None):
    """Returns whether all went well, and which tests there were."""
    radio, controllers, peers = GROUPS[name]
    label = f"{name} on {series}" if series else name
    counts, performed = {"ok": 0, "not ok": 0}, set()

    def show(line):
        for kind in counts:
            if line.startswith(f"{kind} "):
                counts[kind] += 1
                # After a death of the guest a test may be reported again.
                performed.add(re.split(r": | \(", line[len(kind) + 1:])[0])
                line = f"{kind} kernel, {label}: {line[len(kind) + 1:]}"
        print(line, flush=True)

    # A plain user may not reach this folder, so the guest gets its own copy of the program.
    steps = [f'"$VM_PYTHON" Tests/VM/guest/test_{module}.py "$@"' for module in (*BEFORE.get(name, ()), name)]
    if name == "legacy" and not only:
        # What hangs is ended, so that the others are tested.
        steps.insert(0, f'timeout --kill-after=10 600 "{BUNDLE}" --testing-library swift-testing --no-parallel --filter "{SUITES}"')
    copied = BLESCAN in needed(name)
    script = "; ".join([
        *([f'/run/vm/busybox cp "{BLESCAN}" /run/vm/blescan && export BLESCAN=/run/vm/blescan'] if copied else []), "status=0",
        *(f"{step} || status=$?" for step in steps), "exit $status"])
    log = LOGS / f"kernel-{label.replace(' on ', '-')}.log"
    # A folder of the group's own: another group may run at the same time.
    captured = log.with_suffix(".captures")
    shutil.rmtree(captured, ignore_errors=True)
    status = bed.boot(
        ["/bin/sh", "-c", script, "sh", *only], radio=radio, controllers=controllers, peers=peers, limit=2100 + 3 * cycles,
        log=log, show=show, environment={
            "PYTHONDONTWRITEBYTECODE": "1", "BAREBLE_KERNEL_TESTS": "1", "HEART_RATE_LOGGER": str(LOGGER),
            "ADVERTISEMENT_LOGGER": str(LISTENER), "BAREBLE_RECOVER": str(RECOVER),
            "LINK_TRIALS": str(TRIALS), "PAIRING_TRIALS": str(PAIRING), "LOCK_READER": str(READER),
            "COREBLUETOOTH_WALK": str(WALK), "COREBLUETOOTH_SCANNERS": ":".join(map(str, SCANNERS)), "VM_CYCLES": str(cycles)},
        in_memory=needed(name) if name in SLEEPING else None, host_time=name in HOST_TIME)
    if (status != 0 and not counts["not ok"]) or (not counts["ok"] and not only):
        print(f"not ok kernel, {label}: the tests ended with status {status} after {counts['ok']} passed", flush=True)
        return False, performed
    is_good = status == 0
    if captured.is_dir():
        monitor = bed.tools / "usr" / "bin" / "btmon"
        is_good = captures.check(captured, monitor if monitor.exists() else "btmon", show) and is_good
    return is_good, performed


def main():
    options = argparse.ArgumentParser(description="Kernel tests in a virtual machine")
    options.add_argument("groups", nargs="*", metavar="GROUP", help=", ".join(GROUPS))
    options.add_argument("--only", action="append", default=[], help="a test function's name")
    options.add_argument(
        "--kernel", type=kernels, default=kernels(os.environ.get("KERNELS", "")), metavar="SERIES,...",
        help=f"the kernels, instead of the bed's own; all: {', '.join(ALL)}; also by $KERNELS")
    options.add_argument("--cycles", type=int, default=100, help="how often the groups daemon and centrals connect in one process")
    chosen = options.parse_args()
    names = chosen.groups or list(GROUPS)
    missing = [path for name in names for path in needed(name) if not path.exists()]
    if missing:
        print(f"not ok kernel: {missing[0]} is not built (make test-vm builds it)")
        return 1
    LOGS.mkdir(parents=True, exist_ok=True)
    good = True
    for series in chosen.kernel or (None,):
        # One kernel that cannot be had, or that dies, fails the run; the others are tested all the same.
        try:
            bed = Bed(series)
            print(f"Debian's kernel {bed.release}", flush=True)
            missing = {test.replace("_", " ") for test in chosen.only}
            for name in names:
                is_good, performed = run_group(bed, name, chosen.only, chosen.cycles, series)
                good = is_good and good
                missing -= performed
            if missing:
                print(f"not ok kernel: {', '.join(sorted(missing))}: no such test in {', '.join(names)}", flush=True)
                good = False
        except BedError as error:
            print(f"not ok kernel{f' {series}' if series else ''}, the bed: {error}", flush=True)
            good = False
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
