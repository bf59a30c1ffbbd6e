"""The programs that are measured: building them, taking turns between them, counting what they do."""

import os
import re
import statistics
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "Tests" / "Benchmarks"
BUILD = ROOT / ".build" / "benchmarks"
PYTHON = BUILD / "venv" / "bin" / "python3"
PACKAGES = ["bluetooth-data-tools==1.29.24", "bumble==0.0.236"]
SWIFT = ["swift", "build", "-c", "release", "--static-swift-stdlib", "--disable-local-rpath"]
RELEASE = ["--toolset", "Docs/packaging/release.json"]
STRICT = ["-Wall", "-Wextra", "-Werror"]
# In a folder of its own: the compiler does not generate code again for sources whose options alone have changed.
SMALL = ["--toolset", "Docs/examples/small.json", "--scratch-path", ".build/small"]


def build():
    BUILD.mkdir(parents=True, exist_ok=True)
    for product, options, folder in (
            ("benchmarks", RELEASE, "release"), ("facade-benchmark", RELEASE, "release"), ("sample-daemon", SMALL, "small/release")):
        call([*SWIFT, *options, "--product", product])
        # As it would be installed; and valgrind stumbles over some debugging information.
        call(["strip", f"{ROOT}/.build/{folder}/{product}", "-o", f"{BUILD}/{product}"])
    for name in ("att_peer", "att_client"):
        compile(BUILD / name, HERE / "C" / f"{name}.c")
    compile(BUILD / "count_allocations.so", HERE / "C" / "count_allocations.c", options=[*STRICT, "-shared", "-fPIC"])


def build_blescan():
    """blescan as it would be installed."""
    call([*SWIFT, *RELEASE, "--product", "blescan"])
    blescan = BUILD / "blescan"
    call(["strip", f"{ROOT}/.build/release/blescan", "-o", str(blescan)])
    return blescan


def compile(output, *sources, options=STRICT):
    # The C compiler of the Swift toolchain is there wherever Swift is.
    swift = subprocess.run(["bash", "-c", "readlink -f $(command -v swift)"], capture_output=True, text=True)
    clang = Path(swift.stdout.strip()).parent / "clang"
    call([str(clang) if clang.exists() else "cc", "-O2", *options, *map(str, sources), "-o", str(output)])


def build_python():
    """The parsers to compare with, in a virtual environment of their own."""
    wanted = BUILD / "venv" / "packages"
    if wanted.exists() and wanted.read_text() == " ".join(PACKAGES):
        return
    call([sys.executable, "-m", "venv", "--clear", str(BUILD / "venv")])
    call([str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES])
    wanted.write_text(" ".join(PACKAGES))


def call(command):
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"`{' '.join(command)}` failed:\n{(done.stdout + done.stderr)[-4000:]}")


@contextmanager
def one_cpu():
    """Binds this program and all that it starts meanwhile to one processor, ahead of others where that is permitted."""
    before, niceness = os.sched_getaffinity(0), os.getpriority(os.PRIO_PROCESS, 0)
    os.sched_setaffinity(0, {max(before)})
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -20)
    except PermissionError:
        pass
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
        os.setpriority(os.PRIO_PROCESS, 0, niceness)


class Measured:
    """A program that takes an order a line and answers it with a line of numbers."""

    def __init__(self, command, preamble="", pass_fds=()):
        self.process = subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, pass_fds=pass_fds)
        self.process.stdin.write(preamble)

    def order(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.process.args[0]} ended at the order {words}, status {self.process.wait()}")
        return [int(word) for word in line.split()]

    def end(self):
        self.process.stdin.close()
        self.process.wait(timeout=30)


class Rounds:
    """The times of several rounds, in units of one operation; the minimum is what the software costs."""

    def __init__(self):
        self.times = []

    def add(self, nanoseconds, operations):
        self.times.append(nanoseconds / operations)

    @property
    def least(self):
        return min(self.times)

    @property
    def median(self):
        return statistics.median(self.times)


def instructions(command, stdin):
    """How many instructions a run takes, by valgrind's count, which is the same on every machine of the kind."""
    done = subprocess.run(
        ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", *map(str, command)],
        input=stdin, capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": "0"})
    found = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    return int(found[1].replace(",", "")) if found and done.returncode == 0 else None


def allocations(command, stdin):
    """How often a run takes memory from the heap."""
    with tempfile.NamedTemporaryFile("r") as report:
        subprocess.run(
            [str(word) for word in command], input=stdin, stdout=subprocess.DEVNULL, text=True, check=True,
            env={**counting_allocations(report.name), "PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"})
        return int(report.read())


def counting_allocations(report):
    """The environment of a program that writes the number of its allocations to a file at its end."""
    return {**os.environ, "LD_PRELOAD": f"{BUILD}/count_allocations.so", "COUNT_ALLOCATIONS": report}


def per_operation(count, command, stdin, order, passes, operations):
    """What one operation adds to a run: the difference of two runs that differ in nothing else."""
    once = count(command, stdin(order, passes))
    twice = count(command, stdin(order, 2 * passes))
    return None if once is None or twice is None else (twice - once) / (passes * operations)
