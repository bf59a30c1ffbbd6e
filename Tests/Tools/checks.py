"""checks.py STEP...: runs the named steps one after the other, and ends with one line:

    N passed, N failed, N skipped

Steps: unit (all Swift tests, debug), api (the public interface and the catalogue of faults are as Docs/api.md and
Docs/reliability.md say), examples (the daemons in Docs/examples, built, tested and run), simulation (ten thousand seeds,
release), sanitized (the core's tests, release, with the address sanitizer), fuzz (every parser and whole sessions, some seconds each), embedded (BLECore as Embedded Swift),
linkage (what a daemon links), load (a fraction of `make soak`), packaging (manual pages, completions, and the Debian package in
a chroot), kernel (blescan and a daemon in a virtual machine).
For `make sanitize`, each with a build of its own in .build/STEP: addresses, threads, undefined (all Swift tests with that sanitizer),
optimised (all Swift tests in a release build).

A step's whole output goes to .build/checks/STEP.log; what failed or was skipped is shown. A failed step does not stop the
next one. Status 0: nothing failed; on a build machine (CI=true) a skipped test counts as a failure too.
"""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / ".build" / "checks"
STRICT = os.environ.get("CI", "").lower() in ("true", "1", "yes")

# One way to build what is released, in all steps and in the Makefile: with other options everything would be linked again, or compiled.
RELEASE = ["swift", "build", "-c", "release", "--static-swift-stdlib", "--disable-local-rpath", "--product"]

# What hangs is ended, and fails its step. The longest command takes a third of that on two processors.
LIMIT = ["timeout", "--kill-after=30", "60m"]

# Swift Testing says "✔ Test name() passed after 0.1 seconds.", the other steps "ok name" and "not ok name: why". A test of a
# suite that cannot run is a skipped one; the line "SKIPPED: suite: why" beside it is shown, not counted.
SWIFT_TEST = re.compile(r"^\S+ +Test (?!run |case )(?:.+?) (passed(?= after \d)|failed(?= after \d)|skipped(?=$|[.:]))")
PLAIN_TEST = re.compile(r"^(ok|not ok|skipped) (.+)$")
WORTH_SHOWING = re.compile(r"^\s*(✘|not ok |skipped )|SKIPPED: |(: |^)(error|fatal error): |Sanitizer|Fatal error", re.I)


# The tests of values, which run in parallel.
CORE = ["--filter", "^BLECoreTests", "--filter", "^BLEProfilesTests", "--filter", "^BLECaptureTests"]


class Tally:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def read(self, line):
        if match := SWIFT_TEST.match(line):
            setattr(self, match[1], getattr(self, match[1]) + 1)
        elif match := PLAIN_TEST.match(line):
            kind = {"ok": "passed", "not ok": "failed", "skipped": "skipped"}[match[1]]
            setattr(self, kind, getattr(self, kind) + 1)

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def __str__(self):
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def unit():
    yield from suite()


def suite(*options, environment={}, left_out=()):
    """All Swift tests but those left out, built and run with these options of the package manager and in this environment."""
    for part in "bumble", "tools", "decoder":
        yield ["python3", "Tests/VM/bed.py", "--prepare", part], {}
    yield ["swift", "build", "--build-tests", *options], {}
    test = ["swift", "test", "--skip-build", "--disable-xctest", *options]
    yield [*test, *CORE], environment
    # Each adapter in there keeps the descriptors of its loop, 1,300 in all, whose thread has ended: no other test
    # should be affected.
    yield [*test, "--no-parallel", "--filter", "^FaultTests"], environment
    # Tests that wait for other programs run one by one: beside others, on few processors, their peers would time out.
    # Suites named Kernel... switch adapters; the kernel step runs them in the virtual machine.
    cache = Path(os.environ.get("BAREBLE_VM_DIR") or ROOT / ".build" / "vm")
    skips = [part for name in (*CORE[1::2], "^FaultTests", r"\.Kernel[A-Za-z]*Tests", *left_out) for part in ("--skip", name)]
    yield [*test, "--no-parallel", *skips], {
        "BAREBLE_PYTHON": str(cache / "python" / "bin" / "python"),
        "BAREBLE_BTMON": str(cache / "tools" / "usr" / "bin" / "btmon"), **environment}


def addresses():
    # Constants of the tests that live to the end look like leaks to it.
    yield from suite(
        "--sanitize=address", "--scratch-path", ".build/addresses", environment={"ASAN_OPTIONS": "detect_leaks=0"})


def threads():
    # After a race the run ends with a status of its own, whatever the tests say. The sanitizer begins with a file of its own, which is larger
    # than the one test lets blescan write.
    yield from suite(
        "--sanitize=thread", "--scratch-path", ".build/threads", left_out=["aFullDiskEndsTheRecordingAlone"])


def undefined():
    # Swift on Linux has no such sanitizer, and defines what C leaves open. So this is for the C below it, inline functions of
    # headers that Swift compiles with it included: what is undefined there ends the process.
    yield from suite(
        "-Xcc", "-fsanitize=undefined", "-Xcc", "-fsanitize-trap=undefined", "--scratch-path", ".build/undefined")


def optimised():
    yield from suite("-c", "release", "-Xswiftc", "-enable-testing", "--scratch-path", ".build/optimised")


def api():
    yield ["Tests/Tools/list-reliability"], {}
    yield ["swift", "build"], {}
    yield ["Tests/Tools/list-api"], {}


def examples():
    package = ["--package-path", "Docs/examples", "--scratch-path", ".build/examples"]
    yield ["swift", "build", *package, "--build-tests"], {}
    yield ["swift", "test", *package, "--skip-build", "--disable-xctest", "--no-parallel"], {}


def simulation():
    yield [*RELEASE, "simulation"], {}
    yield ["Tests/Tools/simulate", os.environ.get("SEEDS") or "0..<10000"], {}


def sanitized():
    # Every truncated and flipped byte runs once more, optimised, with out-of-bounds accesses made visible.
    options = [
        "--package-path", "Tests/Core", "-c", "release", "--sanitize=address", "--scratch-path", ".build/sanitized",
        "-Xswiftc", "-enable-testing"]
    # Constants of the tests that live to the end look like leaks to it.
    yield ["swift", "test", *options, "--disable-xctest"], {
        "ASAN_OPTIONS": "detect_leaks=0",
        # The vectors lie beside the checkout, not beside the package of the core.
        "BAREBLE_SHARED": os.environ.get("BAREBLE_SHARED") or str(ROOT.parent / "shared")}


def fuzz():
    # A short look at each place where foreign bytes come in; what was found once is replayed first. The same look each time: a change
    # is to fail by what it does, not by luck, which is what `make fuzz` is for.
    yield ["Tests/Fuzz/run"], {"SECONDS_EACH": "5", "SEED": "1"}


def embedded():
    yield ["Tests/Tools/compile-embedded"], {}


def linkage():
    yield ["swift", "build", "--product", "sample-daemon"], {}
    for product in "sample-daemon", "blescan":
        yield [*RELEASE, product], {}
    yield ["Tests/Tools/check-linkage"], {}


def load():
    yield [*RELEASE, "load-trials"], {}
    yield [".build/release/load-trials", "--short"], {}


def packaging():
    yield ["swift", "build", "--product", "blescan"], {}
    yield ["Tests/Tools/check-manuals", ".build/debug/blescan"], {}
    yield [*RELEASE, "blescan"], {}
    yield ["Tests/Tools/check-deb"], {}


def kernel():
    yield ["swift", "build", "--build-tests"], {}
    yield [*RELEASE, "blescan"], {}
    yield [
        "swift", "build", "--package-path", "Docs/examples", "--scratch-path", ".build/examples", "--product",
        "heart-rate-logger"], {}
    yield ["python3", "Tests/VM/run.py"], {}


STEPS = {step.__name__: step for step in (
    unit, api, examples, simulation, sanitized, fuzz, embedded, linkage, load, packaging, kernel,
    addresses, threads, undefined, optimised)}


def is_built(command, done):
    """Whether a build adds nothing to those that have succeeded: the same one, or one product after a build of everything.

    The sources stay as they are meanwhile, and even a build that finds nothing to do plans for many seconds.
    """
    if command[:2] != ["swift", "build"]:
        return False
    place = command.index("--product") if "--product" in command else len(command)
    everything = command[:place] + command[place + 2:]
    return any(
        command == other or "--build-tests" in other and everything == [word for word in other if word != "--build-tests"]
        for other in done)


def run(name, done):
    """Runs one step, without the builds that are `done`, to which it adds its own; returns its tally. A command that ends badly without a failed test counts as one failure."""
    tally, shown, tail = Tally(), [], []
    began = time.monotonic()
    with open(LOGS / f"{name}.log", "w") as log:
        for command, environment in STEPS[name]():
            failed_before = tally.failed
            log.write(f"$ {' '.join(command)}\n")
            if is_built(command, done):
                log.write("built in an earlier step\n")
                continue
            child = subprocess.Popen(
                [*LIMIT, *command], cwd=ROOT, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
            for line in child.stdout:
                log.write(line)
                log.flush()
                line = line.rstrip("\n")
                tally.read(line)
                tail = (tail + [line])[-15:]
                if WORTH_SHOWING.search(line) and line not in shown:
                    shown.append(line)
            status = child.wait()
            if status != 0 and tally.failed == failed_before:
                tally.failed += 1
                shown += [f"`{' '.join(command)}` ended with status {status}; its last lines:", *tail]
                break
            if status == 0 and command[:2] == ["swift", "build"]:
                done.append(command)
    if name in ("embedded", "linkage") and tally.failed == 0 and tally.passed == 0:
        tally.passed = 1
    print(f"{name:<10} {tally}  ({time.monotonic() - began:.0f} s)", flush=True)
    for line in shown[:60]:
        print("    " + line)
    if tally.failed or len(shown) > 60:
        print(f"    all of it: {(LOGS / (name + '.log')).relative_to(ROOT)}", flush=True)
    return tally


def main(names):
    unknown = [name for name in names if name not in STEPS]
    if unknown or not names:
        print(f"checks.py: the steps are {', '.join(STEPS)}", file=sys.stderr)
        return 64
    LOGS.mkdir(parents=True, exist_ok=True)
    total, done = Tally(), []
    for name in names:
        print(f"{name:<10} ...", flush=True)
        total.add(run(name, done))
    (LOGS / "summary").write_text(f"{total}\n")
    print(total, flush=True)
    if STRICT and total.skipped and not total.failed:
        print("A skipped test is a failure on a build machine (CI is set).", file=sys.stderr)
    return 1 if total.failed or total.passed == 0 or (STRICT and total.skipped) else 0


sys.exit(main(sys.argv[1:]))
