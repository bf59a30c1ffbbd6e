"""checks.py STEP...: runs the named steps, and ends with one line:

    N passed, N failed, N skipped

They run one after the other; if kernel is among them, its builds and virtual machines run beside the others, and so do sanitized,
embedded and fuzz.

Steps: unit (all Swift tests, debug), api (the public interface and the catalogue of faults are as Docs/users/api.md and
Docs/users/reliability.md say), examples (the daemons in Docs/examples, built, tested and run, and their units; the modules in Docs/companions), simulation (ten thousand seeds,
release), sanitized (the core's tests with the address sanitizer), fuzz (every parser and whole sessions, optimised, with that sanitizer, some seconds each), embedded (BLECore as Embedded Swift),
linkage (what a daemon links), load (a fraction of `make soak`), packaging (manual pages, completions, the Debian package in
a chroot, and packages on the product CoreBluetooth and on the installed module), kernel (blescan and a daemon in a virtual machine).
For `make sanitize`, each with a build of its own in .build/STEP: addresses, threads, undefined (all Swift tests with that sanitizer),
optimised (all Swift tests in a release build).

With SAMPLE=1, as on the build machine, whose time is limited: `sanitized` and `fuzz` are left out, the simulation plays a tenth of
its seeds, and of the group of kernel tests that runs on a second kernel those tests run that meet a difference of the two.

A step's whole output goes to .build/checks/STEP.log; what failed or was skipped is shown, and what failed is in
.build/checks/failures at the end. A failed step does not stop the next one. Status 0: nothing failed; on a build machine (CI=true) a skipped test counts as a failure too.
"""

import concurrent.futures
import contextlib
import os
import re
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / ".build" / "checks"
STRICT = os.environ.get("CI", "").lower() in ("true", "1", "yes")
SAMPLE = os.environ.get("SAMPLE") == "1"

# One way to build what is released, in all steps and in the Makefile: with other options everything would be linked again, or compiled.
RELEASE = [
    "swift", "build", "-c", "release", "--static-swift-stdlib", "--disable-local-rpath", "--toolset", "Docs/packaging/release.json", "--product"]

# The tests of blescan start it many times, and the parser of options of a debug build checks itself each time. So they take the
# program that users have, if it is built from these sources.
RELEASED = ROOT / ".build" / "release" / "blescan"

# Nobody debugs what the build machine has built, and debug information takes time. The index stays: the list of tests is made
# from it.
DEBUG = ["swift", "build", *(["-Xswiftc", "-gnone"] if SAMPLE else [])]

# The packages of the documentation are built on the debug build of the modules, beside it.
SHARED = ["--scratch-path", ".build"]
EXAMPLES = ["--package-path", "Docs/examples", *SHARED]
COMPANIONS = ["--package-path", "Docs/companions", *SHARED]
# So is one that depends on the product CoreBluetooth, as users write it.
DEPENDENT = ["--package-path", "Tests/CoreBluetoothClients/Dependent", *SHARED]

# What hangs is ended, and fails its step. The longest command takes less than half of that on two processors, beside two busy loops.
LIMIT = ["timeout", "--kill-after=30", "100m"]

# Swift Testing says "✔ Test name() passed after 0.1 seconds.", the other steps "ok name" and "not ok name: why". A test of a
# suite that cannot run is a skipped one; the line "SKIPPED: suite: why" beside it is shown, not counted.
SWIFT_TEST = re.compile(r"^\S+ +Test (?!run |case )(?:.+?) (passed(?= after \d)|failed(?= after \d)|skipped(?=$|[.:]))")
PLAIN_TEST = re.compile(r"^(ok|not ok|skipped) (.+)$")
WORTH_SHOWING = re.compile(r"^\s*(?:\x1b\[\d+m)?(✘|not ok |skipped |bed\.py: )|SKIPPED: |(: |^)(error|fatal error): |Sanitizer|Fatal error", re.I)


# Modules whose tests need nothing but processors: values and machines, and the rest of the library in virtual time or with limits that only
# a fault reaches. They run in parallel.
BESIDE = [f"^{module}" for module in (
    "BLECoreTests", "BLEProfilesTests", "BLECaptureTests", "BareBLETests", "BareBLETestKitTests", "BareBLECryptoTests",
    "BareBLEFoundationTests", "SimulationTests", "CoreBluetoothTests")]
# Suites with the limits of real time, beside which nothing else may keep the process from running, and suites for real adapters, which the
# kernel step runs in the virtual machine.
ALONE = [r"\.RealTime[A-Za-z]*Tests"]
KERNEL = [r"\.Kernel[A-Za-z]*Tests"]
# Suites of these modules that start programs. Until such a process executes its program it holds a copy of every socket of this one, so a
# link that is closed meanwhile ends later than virtual time can know.
STARTING = [
    r"^BareBLETests\.(BumbleDiscovery|ThreadRoom)Tests", r"^CoreBluetoothTests\.(DispatchMain|UUID|Restoration)Tests"]
# Each about a third of the time that programs under test, terminals and brokers are waited for.
WORDS = [rf"^blescanTests\.{suite}" for suite in (
    "BumblePeerTests", "CacheTests", "CapabilityPageTests", "CommandWordsTests", "ValueLineTests")]
TERMINALS = [rf"^blescanTests\.{suite}" for suite in (
    "BadInputTests", "DoctorTests", "HelpTests", "ProgressTests", "ScreenTests", "TerminalTests", "UnrulyPeerTests")]


# Steps that build in folders of their own. They run one after the other beside everything else: building the others' programs leaves
# a processor idle for minutes.
APART = "sanitized", "embedded", "fuzz"
# Steps without limits of time. They come last, and have the machines of host time beside them.
UNTIMED = "simulation", "packaging"


class Together(list):
    """Commands that run at the same time, each with its environment."""


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


def is_older_than_sources(program):
    sources = [ROOT / "Package.swift", *(ROOT / "Sources").rglob("*")]
    return program.stat().st_mtime < max(source.stat().st_mtime for source in sources)


def suite(*options, environment={}, left_out=()):
    """All Swift tests but those left out, built and run with these options of the package manager and in this environment."""
    for part in "bumble", "tools", "decoder":
        yield ["python3", "Tests/VM/bed.py", "--prepare", part], {}
    yield [*DEBUG, "--build-tests", *options], {}
    # Not by `swift test`: it plans a build for many seconds, and the next one waits for it.
    folder = options[options.index("--scratch-path") + 1] if "--scratch-path" in options else ".build"
    program = f"{folder}/{'release' if 'release' in options else 'debug'}/BareBLEPackageTests.xctest"
    cache = Path(os.environ.get("BAREBLE_VM_DIR") or ROOT / ".build" / "vm")
    if folder != ".build":
        # It has the sanitizer or the optimisation that is asked for.
        environment = {"BAREBLE_BLESCAN": str((ROOT / program).parent / "blescan"), **environment}
    elif "BAREBLE_BLESCAN" not in os.environ and RELEASED.exists() and not is_older_than_sources(RELEASED):
        environment = {"BAREBLE_BLESCAN": str(RELEASED), **environment}
    environment = {
        "BAREBLE_PYTHON": str(cache / "python" / "bin" / "python"),
        "BAREBLE_BTMON": str(cache / "tools" / "usr" / "bin" / "btmon"), **environment}

    def tests(*more, only=(), without=()):
        chosen = [word for name in only for word in ("--filter", name)]
        left = [word for name in (*without, *KERNEL, *left_out) for word in ("--skip", name)]
        return [program, "--testing-library", "swift-testing", *more, *chosen, *left], environment

    # All tests of a part that runs in parallel would begin at once, each with the limits of real time running, and a slow machine would make
    # them miss those. Some at a time keep it as busy.
    width = ["--experimental-maximum-parallelization-width", "16"]
    # The parts wait more than they compute, so they run beside each other. Within a part, tests that wait for other programs run one by
    # one: on few processors, the peers of a hundred of them would time out. FaultTests have a process of their own: each adapter in there
    # keeps the descriptors of its loop, 1,300 in all, whose thread has ended.
    yield Together([
        tests(*width, only=BESIDE, without=[*ALONE, *STARTING]),
        tests("--no-parallel", only=["^FaultTests"]),
        tests("--no-parallel", only=[*STARTING, *TERMINALS]),
        tests("--no-parallel", only=WORDS),
        tests("--no-parallel", without=[*BESIDE, "^FaultTests", *TERMINALS, *WORDS]),
    ]), {}
    yield tests("--no-parallel", only=ALONE)


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
    yield DEBUG, {}
    yield ["Tests/Tools/list-api"], {}


def examples():
    yield [*DEBUG, *EXAMPLES, "--build-tests"], {}
    yield ["Tests/Tools/check-units"], {}
    yield ["swift", "test", *EXAMPLES, "--skip-build", "--disable-xctest", "--no-parallel"], {}
    yield [*DEBUG, *COMPANIONS, "--build-tests"], {}
    yield ["swift", "test", *COMPANIONS, "--skip-build", "--disable-xctest", "--no-parallel"], {}


def simulation():
    yield [*RELEASE, "simulation"], {}
    yield ["Tests/Tools/simulate", os.environ.get("SEEDS") or ("0..<1000" if SAMPLE else "0..<10000")], {}


def sanitized():
    # Every truncated and flipped byte runs once more, with out-of-bounds accesses made visible. Optimised code has the
    # sanitizer in the step `fuzz`; compiling it twice would take longer than everything here.
    options = ["--package-path", "Tests/Core", "--sanitize=address", "--scratch-path", ".build/sanitized"]
    # Constants of the tests that live to the end look like leaks to it.
    yield ["swift", "test", *options, "--disable-xctest"], {
        "ASAN_OPTIONS": "detect_leaks=0",
        # The vectors lie beside the checkout, not beside the package of the core.
        "BAREBLE_SHARED": os.environ.get("BAREBLE_SHARED") or str(ROOT.parent / "shared")}


def fuzz():
    # A short look at each place where foreign bytes come in; what was found once is replayed first. A change is to fail by what it does, and
    # neither by luck, which is what `make fuzz` is for, nor by the load of the machine. So the number of inputs, the seed, what they begin
    # with and the order of sets are the same each time. Beside a build each fuzzer takes 2 s to 6 s for them.
    yield ["Tests/Fuzz/run"], {"EXECUTIONS": "250000", "SEED": "1", "FRESH": "1", "SWIFT_DETERMINISTIC_HASHING": "1"}


def embedded():
    yield ["Tests/Tools/compile-embedded"], {}


def linkage():
    for product in "sample-daemon", "corebluetooth-scanner":
        yield [*DEBUG, "--product", product], {}
    for product in "sample-daemon", "blescan", "bareble-recover":
        yield [*RELEASE, product], {}
    yield ["Tests/Tools/check-linkage"], {}


def load():
    yield [*RELEASE, "load-trials"], {}
    yield [".build/release/load-trials", "--short"], {}


def packaging():
    yield [*DEBUG, "--product", "blescan"], {}
    yield ["Tests/Tools/check-manuals", ".build/debug/blescan"], {}
    yield [*RELEASE, "blescan"], {}
    yield [*RELEASE, "bareble-recover"], {}
    yield ["Tests/Tools/check-deb"], {}
    yield [*RELEASE, "corebluetooth-scanner"], {}
    yield [*DEBUG, *DEPENDENT], {}
    yield ["Tests/Tools/check-corebluetooth"], {}


# Where the kernels differ: the keys that they hold, what they report of them, and how they resolve addresses.
DIFFERING = (
    "the_adapter_is_switched_off_and_on_once", "a_bond_outlives_the_process_and_the_adapter",
    "each_agent_pairs_as_the_capabilities_say", "each_agent_pairs_as_the_capabilities_say_in_legacy_pairing",
    "a_lock_that_has_lost_its_key_is_neither_believed_nor_paired", "a_bond_that_a_lock_has_lost_is_replaced_by_a_connect",
    "requests_of_strangers_for_a_pairing_are_refused", "a_lock_with_private_addresses_is_one_lock",
    "a_session_stays_with_a_lock_that_changes_its_address", "bonds_outlive_the_power")
# The longest first: what runs last has one of the processors. Time in these guests is counted in instructions.
COUNTED = ["doctor", "extended", "centrals", "pairing", "daemon", "recovery", "dual", "corebluetooth"]
# Have the time of this machine.
HOST_TIME = [
    ["legacy"], ["pairing", "--kernel", "6.1", *(word for test in (DIFFERING if SAMPLE else ()) for word in ("--only", test))]]


def kernel():
    """With $KERNELS, such as `6.1,6.12` or `all`, every group on each of these, one after the other."""
    yield [*DEBUG, "--build-tests"], {}
    yield [*RELEASE, "blescan"], {}
    yield [*RELEASE, "bareble-recover"], {}
    # The guests run three of them. The step `examples` builds nothing more then.
    yield [*DEBUG, *EXAMPLES, "--build-tests"], {}
    for groups in machines():
        # No time limit in the guest runs out because others come first. With a lower priority than theirs the guests would go on
        # long after the other steps, where other programs are busy too.
        yield ["python3", "Tests/VM/run.py", *groups], {}
    for groups in machines_of_host_time():
        # Limits of the kernel, such as 2 s for a command, are of this machine's time. Without the right to do so, nice reports that
        # and goes on.
        yield ["nice", "-n", "-10", "python3", "Tests/VM/run.py", *groups], {}


def machines():
    """The runs of virtual machines that may have anything beside them."""
    return [] if os.environ.get("KERNELS") else [[group] for group in COUNTED]


def machines_of_host_time():
    """The others, which may have nothing but those and the steps of `APART` and `UNTIMED` beside them."""
    return [[]] if os.environ.get("KERNELS") else HOST_TIME


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


@contextlib.contextmanager
def alone_in_folder(command):
    """Keeps the builds of two packages in one folder apart, before and after a command for a package beside this one."""

    def part():
        debug = ROOT / ".build" / "debug"
        # The package manager takes the plan that is in the folder, whatever package it is of.
        (debug / "description.json").unlink(missing_ok=True)
        # With a module `os` in the folder, `canImport(os)` is true in each package that is compiled there.
        for companion in "os", "OSLog", "Combine":
            for file in (debug / "Modules").glob(f"{companion}.swift*"):
                file.unlink()

    is_shared = SHARED in (command[place:place + len(SHARED)] for place in range(len(command)))
    if is_shared:
        part()
    try:
        yield
    finally:
        if is_shared:
            part()


class Run:
    """One step, whose commands may be performed a few at a time. A command that ends badly without a failed test counts as one failure."""

    def __init__(self, name, done):
        """`done` holds the builds that need not be done again, and gets those of this step."""
        self.name, self.done = name, done
        self.tally, self.shown, self.began = Tally(), [], time.monotonic()
        self.commands = list(STEPS[name]())
        self.kept = 0
        self.lock = threading.Lock()
        self.log = open(LOGS / f"{name}.log", "w")

    def perform(self, is_shared=False):
        """Performs one command after the other until as many are left as are kept; after a failure none.

        Several threads may do so at once, each with `is_shared`: the log gets what a command prints when it has ended.
        """
        while (command := self.take()) is not None:
            self.attempt(command, is_shared)

    def attempt(self, command_in_environment, is_shared):
        command, environment = command_in_environment
        is_good = False
        try:
            if isinstance(command, Together):
                is_good = self.together(command)
            else:
                lines = [] if is_shared else None
                is_good = self.one(command, environment, lines)
                self.write(lines or [])
        except Exception as error:
            # In a thread of its own nobody else would notice.
            with self.lock:
                self.tally.failed += 1
                self.shown.append(f"`{command}` was not performed: {error}")
        if not is_good:
            with self.lock:
                self.commands = []

    def keep(self, count):
        """The last `count` commands are for `perform_kept`."""
        with self.lock:
            self.kept = count

    def perform_kept(self):
        """Performs what was kept, one after the other, while other threads go on with the rest."""
        while (command := self.take(is_kept=True)) is not None:
            self.attempt(command, is_shared=True)

    def take(self, is_kept=False):
        with self.lock:
            first_kept = len(self.commands) - self.kept
            if not is_kept:
                return self.commands.pop(0) if first_kept > 0 else None
            if not self.kept or not self.commands:
                return None
            self.kept -= 1
            return self.commands.pop(first_kept)

    def write(self, lines):
        with self.lock:
            self.log.writelines(lines)
            self.log.flush()

    def together(self, commands):
        results = {}

        def part(number, command, environment):
            results[number] = self.one(command, environment, lines := [])
            self.write(lines)

        threads = [threading.Thread(target=part, args=(number, *one)) for number, one in enumerate(commands)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return all(results.get(number) for number in range(len(commands)))

    def one(self, command, environment, lines=None):
        """Returns whether the next command makes sense. What it prints goes to the log, or into `lines` first."""

        def write(line):
            if lines is not None:
                return lines.append(line)
            self.log.write(line)
            self.log.flush()
        write(f"$ {' '.join(command)}\n")
        if is_built(command, self.done):
            write("built in an earlier step\n")
            return True
        own, tail, began = Tally(), [], time.monotonic()
        with alone_in_folder(command):
            child = subprocess.Popen(
                [*LIMIT, *command], cwd=ROOT, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
            for line in child.stdout:
                write(line)
                line = line.rstrip("\n")
                own.read(line)
                tail = (tail + [line])[-15:]
                if WORTH_SHOWING.search(line):
                    with self.lock:
                        if line not in self.shown:
                            self.shown.append(line)
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = status = os.waitstatus_to_exitcode(status)
        took = f"{time.monotonic() - began:.0f} s, of a processor {used.ru_utime + used.ru_stime:.0f} s"
        write(f"({took})\n")
        with self.lock:
            is_good = status == 0 or own.failed > 0
            if not is_good:
                own.failed += 1
                self.shown += [f"`{' '.join(command)}` ended with status {status}; its last lines:", *tail]
            self.tally.add(own)
            if "Tests/VM/run.py" in command:
                # Where a time limit ends everything, this shows how far the machines have come.
                groups = command[command.index("Tests/VM/run.py") + 1:]
                print(f"{'':<10} {' '.join(groups[:3])}: {own}  ({took})", flush=True)
            if status == 0 and command[:2] == ["swift", "build"]:
                self.done.append(command)
        return is_good

    def finish(self):
        """Prints what came of it."""
        self.log.close()
        tally = self.tally
        if self.name in ("embedded", "linkage") and tally.failed == 0 and tally.passed == 0:
            tally.passed = 1
        print(f"{self.name:<10} {tally}  ({time.monotonic() - self.began:.0f} s)", flush=True)
        for line in self.shown[:60]:
            print("    " + line)
        if tally.failed or len(self.shown) > 60:
            print(f"    all of it: {(LOGS / (self.name + '.log')).relative_to(ROOT)}", flush=True)
        return tally


def main(names):
    unknown = [name for name in names if name not in STEPS]
    if unknown or not names:
        print(f"checks.py: the steps are {', '.join(STEPS)}", file=sys.stderr)
        return 64
    LOGS.mkdir(parents=True, exist_ok=True)
    # FaultTests have some 1,300 descriptors open in the end, more than a shell usually allows.
    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed != resource.RLIM_INFINITY:
        wanted = max(allowed, 16_384)
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted if most == resource.RLIM_INFINITY else min(wanted, most), most))
    total, done, failures = Tally(), [], []
    beside, one_at_a_time = None, threading.Lock()

    def finish(run):
        with one_at_a_time:
            tally = run.finish()
            total.add(tally)
            if tally.failed:
                # The names of the tests last: of a long output the end is what is looked at.
                shown = sorted(run.shown, key=lambda line: "✘" in line or line.startswith("not ok"))
                failures.extend(f"{run.name}: {line}\n" for line in shown)

    def step(name):
        print(f"{name:<10} ...", flush=True)
        run = Run(name, done)
        run.perform()
        finish(run)

    if SAMPLE:
        names = [name for name in names if name not in ("sanitized", "fuzz")]
    if "kernel" in names and len(names) > 1:
        print(f"{'kernel':<10} ...", flush=True)
        beside = Run("kernel", done)
        later = len(machines_of_host_time())
        beside.keep(later + len(machines()))
        # Before there are threads, each of which copies the environment.
        os.environ.setdefault("BAREBLE_BLESCAN", str(RELEASED))
        apart = concurrent.futures.ThreadPoolExecutor(1).submit(lambda: [step(name) for name in APART if name in names])
        beside.perform(True)
        # A virtual machine waits half of the time and uses one processor in the other half, and time in it does not
        # depend on what else this machine does: four at a time run beside the other steps, and go on after them. No
        # later build changes the programs that run in them.
        beside.keep(later)
        lanes = [threading.Thread(target=beside.perform, args=(True,)) for _ in range(4)]
        for lane in lanes:
            lane.start()
        of_host_time = threading.Thread(target=beside.perform_kept)
        others = [name for name in names if name not in ("kernel", *APART)]
        for name in sorted(others, key=lambda name: name in UNTIMED):
            if name in UNTIMED and of_host_time.ident is None:
                of_host_time.start()
            step(name)
        if of_host_time.ident is None:
            of_host_time.start()
        for thread in (*lanes, of_host_time):
            thread.join()
        # Not only waits: what has ended a step there is raised here, so that no missing step looks like one that passed.
        apart.result()
        beside.perform(True)
        finish(beside)
    else:
        for name in names:
            step(name)
    (LOGS / "failures").write_text("".join(failures))
    (LOGS / "summary").write_text(f"{total}\n")
    print(total, flush=True)
    if STRICT and total.skipped and not total.failed:
        print("A skipped test is a failure on a build machine (CI is set).", file=sys.stderr)
    return 1 if total.failed or total.passed == 0 or (STRICT and total.skipped) else 0


sys.exit(main(sys.argv[1:]))
