"""The bed: a stock Debian kernel in a software-emulated machine, with virtual Bluetooth controllers.

    python3 Tests/VM/bed.py [--radio KIND] [--peer MODULE]... [--controllers N] [--kernel SERIES] [--log FILE] -- COMMAND...

boots, runs COMMAND as root in a throw-away copy of this machine's file system, prints its output, and ends with its
status. Needs no Bluetooth, no KVM and, once the cache is filled, neither root nor network.

Radios: `extended` and `legacy` are Bumble's controllers as guest/radio.py completes them (LE 5 and LE 4.2; several links,
steady advertising, faults on demand, peripherals from guest/peripherals); `dual` is BlueZ's btvirt (BR/EDR and LE, one
link). The guest sees controllers hci0, hci1, ...

In the guest: $VM_TOOLS/usr/bin has BlueZ's programs; a line written to $VM_RADIO is a command for radio.py.
The cache is .build/vm or $BAREBLE_VM_DIR: kernel, BlueZ's tools, Bumble in a virtual environment; about 300 MB.
"""

import argparse
import contextlib
import datetime
import gzip
import json
import lzma
import os
import re
import shlex
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from cache import (
    ROOT, BedError, one_at_a_time, output_of, prepare_bumble, prepare_decoder, prepare_kernel, prepare_tools, require)

HERE = Path(__file__).resolve().parent
BOOTS = 3  # of one command, when the guest's kernel dies or the emulator stands still
STANDSTILL = 180  # seconds without a thousandth of them on a processor, which an idle guest needs many times over
SILENCE = 400  # seconds without a line in the kernel's log, which gets one every 5 s of the guest's time
HUNG = 240  # seconds in which nothing wakes up a task of the guest's kernel, after which that kernel panics
LOOP = 80  # seconds in which a processor of the guest does nothing but one task of the kernel, after which it panics
FATAL = r"is at fault:|soft lockup|blocked for more than|BUG:|Oops|Kernel panic"  # what the log of a dead kernel begins with
NOT_A_CAUSE = r"\]  \? |\bR[A-Z0-9]{1,2}: |\] (Code|CPU|Hardware name|Kernel Offset): "
ALSO_IN_MEMORY = ("/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/usr/bin/dbus-daemon")  # where they are
# Kernels without counted instructions: 6.1 does not boot with them, and 7.2 stalls for up to minutes, because the emulator then runs the
# processors in turns and one waits in a loop for a lock that the other holds.
UNCOUNTED = ("6.1.", "7.2.")
NIGHT = datetime.timedelta(hours=8)  # for which a guest sleeps, by the clock on its board
BOOT_MODULES = ("virtio_pci", "virtio_console", "9p", "9pnet_virtio", "overlay")


# The boot image: busybox, the few modules that reach the host's files, and guest/init.

def cpio_entry(name, mode, content=b""):
    cpio_entry.serial += 1
    fields = [cpio_entry.serial, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0]
    header = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
    return pad(header) + pad(content)


cpio_entry.serial = 0


def pad(data):
    return data + bytes(-len(data) % 4)


def module_files(kernel):
    """The boot modules with what they depend on, in the order of loading."""
    release = next((kernel / "lib" / "modules").iterdir()).name
    found = []
    for module in BOOT_MODULES:
        listing = output_of("/sbin/modprobe", "-d", kernel, "-S", release, "--show-depends", module)
        for path in re.findall(r"^insmod (\S+)", listing, re.M):
            if path not in found:
                found.append(path)
    return [Path(path) for path in found]


def build_boot_image(kernel):
    image = kernel / "initrd.gz"
    sources = [HERE / "guest" / "init", Path(__file__)]
    if image.exists() and all(image.stat().st_mtime > s.stat().st_mtime for s in sources):
        return image
    busybox = shutil.which("busybox") or "/bin/busybox"
    folder, program, plain = stat.S_IFDIR | 0o755, stat.S_IFREG | 0o755, stat.S_IFREG | 0o644
    folders = ("bin", "dev", "proc", "sys", "run", "modules", "host", "layer", "system")
    parts = [cpio_entry(name, folder) for name in folders]
    parts.append(cpio_entry("bin/busybox", program, Path(busybox).read_bytes()))
    parts.append(cpio_entry("init", program, (HERE / "guest" / "init").read_bytes()))
    for number, path in enumerate(module_files(kernel)):
        content = lzma.open(path).read() if path.suffix == ".xz" else path.read_bytes()
        parts.append(cpio_entry(f"modules/{number:02}.ko", plain, content))
    parts.append(cpio_entry("TRAILER!!!", 0))
    fresh = image.with_suffix(".new")
    with gzip.open(fresh, "wb", compresslevel=1) as file:
        file.write(b"".join(parts))
    fresh.rename(image)
    return image


def causes(text):
    """The lines of a kernel's log that say why it died, or what it was waiting for."""
    lines = [line for line in text.splitlines() if not re.search(NOT_A_CAUSE, line)]
    first = next((number for number, line in enumerate(lines) if re.search(FATAL, line)), len(lines) - 5)
    found = lines[max(first, 0):first + 24]
    last = next((number for number, line in enumerate(found) if "Trigger a crash" in line), len(found))
    return [f"bed.py:   {line}" for line in found[:last]]


class Standstill(Exception):
    """The emulator was ended because it had stopped."""


def waited_for_a_processor(pid):
    """The seconds for which the one of a process's threads that waited longest was ready to run and had no processor."""
    longest = 0
    for file in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        # A thread may end meanwhile, and a kernel may not count.
        with contextlib.suppress(OSError, IndexError):
            longest = max(longest, int(file.read_text().split()[1]))
    return longest / 1e9


def watch(emulator, kernel_log, limit, stood_still, expired):
    """Ends an emulator that no longer runs its guest, or whose guest's kernel does nothing, and sets `stood_still`; after `limit` seconds it
    sets `expired`. Time in which other programs have the processors does not count.
    """
    waited = 0.0

    def clock():
        nonlocal waited
        waited = max(waited, waited_for_a_processor(emulator.pid))
        return time.monotonic() - waited

    began = clock()
    used, since = -1.0, time.monotonic()
    size, grown = -1, began
    while emulator.poll() is None:
        if clock() - began >= limit:
            expired.set()
            emulator.kill()
            return
        if kernel_log.stat().st_size != size:
            size, grown = kernel_log.stat().st_size, clock()
        elif clock() - grown >= SILENCE:
            stood_still.set()
            emulator.kill()
            return
        try:
            # The times in user and system mode, as proc(5) numbers the fields; the name before them may have spaces.
            fields = Path(f"/proc/{emulator.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return
        now = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        if now - used >= STANDSTILL / 1000:
            used, since = now, time.monotonic()
        elif time.monotonic() - since >= STANDSTILL:
            stood_still.set()
            emulator.kill()
            return
        time.sleep(5)


def wake_up_in_the_morning(monitor, emulator):
    """Whenever the guest sleeps, puts the clock on its board ahead by NIGHT and wakes it up, while it lives."""
    def say(command, **arguments):
        file.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        file.flush()

    with socket.socket(socket.AF_UNIX) as connection, contextlib.suppress(OSError):
        while connection.connect_ex(str(monitor)) != 0 and emulator.poll() is None:
            time.sleep(0.05)
        file = connection.makefile("rw")
        say("qmp_capabilities")
        nights = 0
        for line in file:
            if json.loads(line).get("event") == "SUSPEND":
                nights += 1
                for register, value in board_clock(datetime.datetime.now(datetime.timezone.utc) + nights * NIGHT):
                    for port, byte in (0x70, register), (0x71, value):
                        say("human-monitor-command", **{"command-line": f"o /b {port:#x} {byte:#x}"})
                say("system_wakeup")


def board_clock(moment):
    """The registers of a PC's clock and their values, in decimal digits; the day of the month first, as one that all months have."""
    century, year = divmod(moment.year, 100)
    fields = (7, 1), (9, year), (0x32, century), (8, moment.month), (7, moment.day), (4, moment.hour), (2, moment.minute)
    return [(register, value // 10 << 4 | value % 10) for register, value in fields]


class Bed:
    """Everything that a boot needs, prepared once."""

    def __init__(self, kernel=None):
        if output_of("dpkg", "--print-architecture").strip() != "amd64":
            raise BedError("the virtual machine needs an amd64 Debian system")
        require("qemu-system-x86", "busybox-static", "kmod")
        with one_at_a_time():
            self.kernel = prepare_kernel(kernel)
            self.tools = prepare_tools()
            self.python = prepare_bumble()
            self.image = build_boot_image(self.kernel)
        self.modules = next((self.kernel / "lib" / "modules").iterdir())

    @property
    def release(self):
        return self.modules.name

    def radio_command(self, radio, controllers, peers):
        if radio == "dual":
            program = self.tools / "usr" / "bin" / "btvirt"
            return [str(program if program.exists() else shutil.which("btvirt")), f"-l{controllers}"]
        command = [str(self.python / "bin" / "python"), "-u", str(HERE / "guest" / "radio.py"), str(controllers)]
        return command + (["--legacy"] if radio == "legacy" else []) + [f"--peer={peer}" for peer in peers]

    def boot(
            self, command, radio="extended", controllers=2, peers=(), limit=300, log=None, show=print, environment=None,
            in_memory=None, host_time=False):
        """Runs `command` in the guest, gives each line of its output to `show`, and returns its exit status.

        With `in_memory`, programs and folders of this machine, the guest has these files only, and may sleep: it is woken up at
        once, by a clock that is ahead by NIGHT. With `host_time` its time is the host's, and its processors run side by side;
        a kernel that needs that always has it.
        """
        host_time = host_time or self.release.startswith(UNCOUNTED)
        with tempfile.TemporaryDirectory(prefix="bareble-vm-") as exchange:
            exchange = Path(exchange)
            exports = {
                "PATH": os.environ.get("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"), "LANG": "C.UTF-8", "HOME": "/run/vm/home",
                "VM_TOOLS": str(self.tools), "VM_CONTROLLERS": str(controllers), "VM_RADIO": "/run/vm/radio.commands",
                "VM_PYTHON": str(self.python / "bin" / "python"), **(environment or {}),
            }
            (exchange / "settings").write_text(
                f"controllers={controllers}\nmodules={shlex.quote(str(self.modules))}\nradio_kind={radio}\n")
            (exchange / "radio").write_text(
                "export PYTHONDONTWRITEBYTECODE=1\n" + f"exec {shlex.join(self.radio_command(radio, controllers, peers))}\n")
            (exchange / "command").write_text(
                "".join(f"export {k}={shlex.quote(v)}\n" for k, v in exports.items())
                + f"cd {shlex.quote(str(ROOT))}\nexec {shlex.join(map(str, command))}\n")
            if in_memory is not None:
                self.pack(in_memory, exchange / "system.tar")
            kernel_log = Path(log) if log else exchange / "kernel.log"
            # Under emulation a kernel now and then dies of itself, as often while it boots as later: nothing in the guest can have
            # killed it without a fault of its own. More seldom the emulator itself stops. Repetitions of the next boot are not reported twice.
            told = set()
            for earlier in kernel_log.parent.glob(f"{kernel_log.stem}.died-*.log"):
                earlier.unlink()
            for attempt in range(BOOTS):
                names = []

                def tell(line):
                    names.append(re.split(r" \(| after \d", line)[0])
                    if names[-1] not in told:
                        show(line)

                try:
                    status = self.emulate(exchange, kernel_log, limit, tell, host_time)
                    what = "the guest's kernel died"
                    if status is not None or "Kernel panic" not in kernel_log.read_text(errors="replace"):
                        break
                except Standstill as standstill:
                    status, what = None, standstill
                text = kernel_log.read_text(errors="replace")
                print(f"bed.py: {what}, time {attempt + 1} of {BOOTS}", *causes(text), sep="\n", file=sys.stderr)
                # The next boot writes another one.
                kernel_log.with_suffix(f".died-{attempt + 1}.log").write_text(text)
                told.update(names)
            radio_log = exchange / "radio.log"
            if log and radio_log.exists():
                shutil.copy(radio_log, kernel_log.with_suffix(".radio.log"))
            if log and (exchange / "captures").is_dir():
                shutil.copytree(exchange / "captures", kernel_log.with_suffix(".captures"), dirs_exist_ok=True)
            if status is None:
                last = [line for file in (kernel_log, radio_log) if file.exists()
                        for line in file.read_text(errors="replace").splitlines()[-12:]]
                raise BedError("the guest did not come up or died:\n" + "\n".join(last))
            return status

    def pack(self, wanted, target):
        """Writes programs and folders, the libraries that they need, and what every guest needs into an archive."""
        python = self.python / "bin" / "python"
        standard = Path(output_of(python, "-c", "import sysconfig; print(sysconfig.get_path('stdlib'))").strip())
        paths = [
            *map(Path, wanted), self.modules, self.python, self.tools, standard, HERE / "guest", Path("/bin/sh"),
            Path("/sbin/modprobe"), *(path for path in map(Path, ALSO_IN_MEMORY) if path.exists())]
        programs = [path for path in paths if path.is_file()] + [
            path for folder in (self.python, self.tools, standard) for path in folder.rglob("*")
            if path.is_file() and (".so" in path.name or os.access(path, os.X_OK))]
        found = re.findall(r"^\s+(?:\S+ => )?(/\S+) \(", output_of("ldd", *programs), re.M)
        names = set()

        def add(path):
            """The file or folder, and every link on the way to it."""
            at = Path("/")
            for index, part in enumerate(path.parts[1:], 2):
                at /= part
                if at.is_symlink():
                    names.add(at)
                    return add(Path(os.path.normpath(at.parent / os.readlink(at)), *path.parts[index:]))
            return names.add(at)

        for path in [*paths, *map(Path, found)]:
            add(path)
        listing = "\n".join(sorted(str(name).lstrip("/") for name in names))
        done = subprocess.run(["tar", "-C", "/", "-cf", target, "-T", "-"], input=listing, capture_output=True, text=True)
        if done.returncode != 0:
            raise BedError(f"cannot pack the guest's files: {done.stderr[-500:]}")

    def emulate(self, exchange, kernel_log, limit, show, host_time):
        # The guest's clock counts what the guest executes, 4 ns an instruction, and follows the host's only while the guest idles. So a
        # host that is busy with something else makes the guest later, not slower: no time limit in it runs out for that.
        counted = ["-accel", "tcg,thread=single", "-icount", "shift=2,sleep=on"]
        # Without `cryptomgr.notests` the kernel tests each cipher when it is first used, which takes a quarter of a boot.
        machine = [
            "qemu-system-x86_64", *(["-accel", "tcg,thread=multi"] if host_time else counted),
            "-machine", "pc", "-cpu", "max", "-smp", "2", "-m", "1536",
            "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-nic", "none",
            "-kernel", self.kernel / "vmlinuz", "-initrd", self.image,
            "-append", "console=ttyS0 loglevel=6 panic=-1 mitigations=off random.trust_cpu=on tsc=reliable cryptomgr.notests "
            f"sysctl.kernel.hung_task_timeout_secs={HUNG} sysctl.kernel.hung_task_panic=1 "
            f"sysctl.kernel.watchdog_thresh={LOOP // 2} sysctl.kernel.softlockup_panic=1",
            "-chardev", f"file,id=log,path={kernel_log}", "-device", "isa-serial,chardev=log",
            "-device", "virtio-serial-pci", "-chardev", "file,id=out,path=/dev/stdout",
            "-device", "virtserialport,chardev=out,name=out", "-device", "virtio-rng-pci",
            *self.share("host", "/", ",readonly=on"), *self.share("exchange", exchange),
            "-qmp", f"unix:{exchange / 'monitor'},server=on,wait=off",
        ]
        answer = exchange / "status"
        for left in exchange / "monitor", answer:
            left.unlink(missing_ok=True)
        child = subprocess.Popen(
            [str(part) for part in machine], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace")
        stood_still, expired = threading.Event(), threading.Event()
        kernel_log.touch()
        threading.Thread(target=watch, args=(child, kernel_log, limit, stood_still, expired), daemon=True).start()
        threading.Thread(target=wake_up_in_the_morning, args=(exchange / "monitor", child), daemon=True).start()
        last = "none"
        try:
            for line in child.stdout:
                last = line.rstrip("\r\n")
                show(last)
            child.wait()
        finally:
            child.kill()
        text = answer.read_text().strip() if answer.exists() else ""
        if text.isdigit():
            return int(text)
        if stood_still.is_set():
            raise Standstill(f"the guest did nothing for {STANDSTILL} s, or its kernel for {SILENCE} s")
        if expired.is_set():
            raise BedError(f"the guest was still busy after {limit} s; its last line: {last}")
        return None

    @staticmethod
    def share(tag, path, more=""):
        return ["-fsdev", f"local,id={tag},path={path},security_model=none,multidevs=remap{more}",
                "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]


def main():
    options = argparse.ArgumentParser(usage="bed.py [options] -- COMMAND...")
    options.add_argument("--radio", choices=("extended", "legacy", "dual"), default="extended")
    options.add_argument("--controllers", type=int, default=2)
    options.add_argument("--peer", action="append", default=[])
    options.add_argument("--kernel", help="a Debian kernel series, e.g. 6.1")
    options.add_argument("--log", help="keep the kernel's log here, and the radio's beside it")
    options.add_argument("--limit", type=int, default=300, help="seconds after which the guest is given up")
    options.add_argument("--prepare", choices=("all", "bumble", "tools", "decoder"), help="only fill the cache")
    options.add_argument("command", nargs="*")
    chosen = options.parse_args()
    try:
        parts = {"bumble": prepare_bumble, "tools": prepare_tools, "decoder": prepare_decoder}
        if chosen.prepare in parts:
            with one_at_a_time():
                parts[chosen.prepare]()
            return 0
        bed = Bed(chosen.kernel)
        if chosen.prepare:
            return 0
        return bed.boot(
            chosen.command or ["/bin/true"], chosen.radio, chosen.controllers, chosen.peer, chosen.limit, chosen.log)
    except BedError as error:
        print(f"bed.py: {error}", file=sys.stderr)
        return 125


if __name__ == "__main__":
    sys.exit(main())
