"""What the bed takes from Debian and from PyPI, once: a kernel, BlueZ's programs, Bumble, and a decoder to compare with.

Packages are unpacked into the cache, not installed.
"""

import contextlib
import fcntl
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("BAREBLE_VM_DIR") or ROOT / ".build" / "vm").absolute()
BUMBLE = "bumble==0.0.236"
DECODER = "TheengsDecoder==2.5.0"  # under the GPL: a process of its own in the tests, part of nothing
SERIES = ("6.12", "6.1")
UNSTABLE = "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian unstable main\n"
# From 6.1.0-55 to -57 closing an L2CAP socket after the link's end is a use after free, and no later one is known to be without that.
FAULTY = re.compile(r"6\.1\.0-(5[5-9]|[6-9]\d)\b")
KEPT_MODULES = (
    "arch", "crypto", "lib", "net", "fs/9p", "fs/netfs", "fs/fscache", "fs/overlayfs", "fs/fuse", "virt",
    "drivers/virtio", "drivers/bluetooth", "drivers/char", "drivers/crypto", "drivers/hid", "drivers/net/virtio_net.ko",
)


class BedError(Exception):
    """The bed itself failed; the text says why."""


def output_of(*command, environment=None):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment).stdout


def run_or_raise(what, *command, cwd=None, environment=None):
    done = subprocess.run(
        command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", env=environment)
    if done.returncode != 0:
        raise BedError(f"{what}: {shlex.join(map(str, command[:4]))} ... said:\n{(done.stdout + done.stderr)[-1500:]}")
    return done.stdout


@contextlib.contextmanager
def one_at_a_time():
    """Keeps two runs from filling the cache at once."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def require(*packages):
    run_or_raise("packages are missing", ROOT / "Tests" / "Tools" / "require", *packages)


class Sources:
    """This machine's package sources."""

    name = "this machine's sources"
    environment = None

    def refresh(self):
        as_root = [] if os.geteuid() == 0 else ["sudo"]
        run_or_raise("cannot refresh the package lists", *as_root, "apt-get", "-qq", "update")


class Unstable(Sources):
    """Debian unstable, with package lists in the cache: nothing on this machine is configured or installed for it."""

    name = "those of Debian unstable"

    def __init__(self):
        folder = CACHE / "unstable"
        for part in "state/lists/partial", "cache/archives/partial":
            (folder / part).mkdir(parents=True, exist_ok=True)
        (folder / "sources.list").write_text(UNSTABLE)
        (folder / "apt.conf").write_text("".join(f'{key} "{value}";\n' for key, value in (
            ("Dir::State", folder / "state"), ("Dir::State::status", "/var/lib/dpkg/status"), ("Dir::Cache", folder / "cache"),
            ("Dir::Etc::SourceList", folder / "sources.list"), ("Dir::Etc::SourceParts", "-"), ("APT::Sandbox::User", "root"))))
        self.environment = {**os.environ, "APT_CONFIG": str(folder / "apt.conf")}

    def refresh(self):
        run_or_raise(
            "cannot refresh the package lists of Debian unstable", "apt-get", "-qq", "update", environment=self.environment)


def unpack(packages, target, sources=Sources()):
    """Downloads Debian packages and extracts them below `target`."""
    fresh = target.with_name(target.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    with tempfile.TemporaryDirectory(dir=fresh.parent) as downloads:
        fetch = ("apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", *packages)
        try:
            run_or_raise("cannot download", *fetch, cwd=downloads, environment=sources.environment)
        except BedError:
            sources.refresh()
            run_or_raise("cannot download packages", *fetch, cwd=downloads, environment=sources.environment)
        for package in sorted(Path(downloads).glob("*.deb")):
            run_or_raise("cannot unpack", "dpkg-deb", "--extract", package, fresh)
    return fresh


def kernel_packages(series, sources):
    """Debian's plain kernel packages of a series, oldest first."""
    names = output_of("apt-cache", "pkgnames", "linux-image-", environment=sources.environment).split()
    plain = re.compile(rf"linux-image-{series}(\.\d+|$|-).*-amd64$")
    chosen = [n for n in names if plain.match(n) and not re.search(r"-(cloud|rt|dbg|unsigned)\b", n)]
    chosen = [n for n in chosen if not re.fullmatch(rf"linux-image-{series}-amd64", n)]
    return sorted(chosen, key=lambda n: [int(d) for d in re.findall(r"\d+", n)])


def choose_kernel(wanted):
    """Returns the newest sound kernel package and its sources: Debian unstable if this machine's have none of that series."""
    for sources in Sources(), *([Unstable()] if wanted else []):
        for attempt in range(2):
            for series in [wanted] if wanted else SERIES:
                names = kernel_packages(re.escape(series), sources)
                sound = [n for n in names if not FAULTY.search(n)]
                if names:
                    return (sound or names)[-1], sources
            if attempt == 0:
                sources.refresh()
    others = ", ".join(kernel_packages(r"\d+\.\d+", sources)) or "none"
    raise BedError(
        f"no package linux-image-{wanted or ' or '.join(SERIES)}.*-amd64 in this machine's package sources or in Debian unstable;"
        f" {sources.name} have these kernels: {others}")


def prepare_kernel(wanted):
    """Returns the folder of an unpacked kernel: `vmlinuz` and `lib/modules/RELEASE`."""
    label = wanted or "default"
    link = CACHE / f"kernel-{label}"
    if link.is_dir():
        return link
    package, sources = choose_kernel(wanted)
    release = package.removeprefix("linux-image-")
    parts = re.findall(r"\b(linux-(?:binary|modules)-\S+)", output_of("apt-cache", "depends", package, environment=sources.environment))
    fresh = unpack([package, *sorted(set(parts))], link, sources)
    if not (fresh / "lib").exists():
        (fresh / "lib").symlink_to("usr/lib")
    modules = fresh / "lib" / "modules" / release
    image = next((p for p in (fresh / "boot" / f"vmlinuz-{release}", modules / "vmlinuz") if p.exists()), None)
    if image is None:
        raise BedError(f"{package} contains no kernel image")
    shutil.copy(image, fresh / "vmlinuz")
    prune_modules(modules / "kernel")
    run_or_raise("cannot index the modules", "/sbin/depmod", "-b", fresh, release)
    fresh.rename(link)
    return link


def prune_modules(folder):
    """Drops the modules that no virtual machine here can need: nine tenths of the package."""
    for path in sorted(folder.rglob("*.ko*")):
        relative = str(path.relative_to(folder))
        if not any(relative.startswith(kept) for kept in KEPT_MODULES):
            path.unlink()


def prepare_tools():
    """Unpacks BlueZ's programs and what they need that is not installed on this machine."""
    target = CACHE / "tools"
    if not target.is_dir():
        wanted = ("bluez", "bluez-test-tools", "dbus")
        simulate = ("apt-get", "-s", "install", "--no-install-recommends", *wanted)
        plan = output_of(*simulate)
        if "bluez-test-tools" not in plan:
            Sources().refresh()
            plan = run_or_raise("cannot find BlueZ's tools", *simulate)
        # A line with [version] would upgrade what is there; only what is missing is taken.
        missing = re.findall(r"^Inst (\S+) \(", plan, re.M)
        fresh = unpack(missing, target) if missing else target.with_name("tools.new")
        fresh.mkdir(exist_ok=True)
        fresh.rename(target)
    return target


def prepare_bumble():
    """Returns a virtual environment with Bumble."""
    target = CACHE / "python"
    if not target.is_dir():
        require("python3-venv")
        fresh = CACHE / "python.new"
        shutil.rmtree(fresh, ignore_errors=True)
        run_or_raise("cannot make a virtual environment", "/usr/bin/python3", "-m", "venv", "--copies", fresh)
        pip = (fresh / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "install", "-q")
        run_or_raise("cannot install Bumble", *pip, BUMBLE)
        # The guest is slow: what can be compiled before is.
        run_or_raise("cannot compile Bumble", fresh / "bin" / "python", "-m", "compileall", "-q", fresh / "lib")
        fresh.rename(target)
    return target


def prepare_decoder():
    """Adds to Bumble's virtual environment the decoder of Theengs, for tests that need no guest."""
    python = prepare_bumble() / "bin" / "python"
    name, version = DECODER.split("==")
    installed = f"import importlib.metadata as m; print(m.version('{name}'))"
    if output_of(python, "-c", installed).strip() != version:
        run_or_raise(
            "cannot install TheengsDecoder", python, "-m", "pip", "--disable-pip-version-check", "install", "-q", DECODER)
