"""A service manager that keeps descriptors, for tests of restarts."""

import array
import fcntl
import os
import socket
import threading
from pathlib import Path

from harness import Program

HIGH = 300  # above what a test and the shell open by themselves


class ServiceManager:
    """Keeps descriptors for a service, as systemd does (sd_notify(3): FDSTORE, FDSTOREREMOVE, BARRIER)."""

    def __init__(self):
        self.stored, self.heard = [], []
        self.path = "/run/vm/notify"
        Path(self.path).unlink(missing_ok=True)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self.socket.bind(self.path)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            data, ancillary, _, _ = self.socket.recvmsg(4096, socket.CMSG_SPACE(64))
            descriptors = array.array("i")
            for _, _, content in ancillary:
                descriptors.frombytes(content[:len(content) - len(content) % descriptors.itemsize])
            lines = data.decode().split("\n")
            self.heard += lines
            name = next((line[7:] for line in lines if line.startswith("FDNAME=")), None)
            if "FDSTOREREMOVE=1" in lines:
                self.remove(name)
            if "FDSTORE=1" in lines:
                self.stored += [(name, descriptor) for descriptor in descriptors]
            else:
                # A barrier is one end of a pipe that the manager closes when it has processed the earlier messages.
                for descriptor in descriptors:
                    os.close(descriptor)

    def remove(self, name):
        for pair in [pair for pair in self.stored if pair[0] == name]:
            os.close(pair[1])
            self.stored.remove(pair)

    def start(self, *arguments, program, **more):
        """Starts a service with the stored descriptors as its descriptors 3, 4, ..."""
        environment = {**os.environ, "NOTIFY_SOCKET": self.path}
        if not self.stored:
            return Program(*arguments, program=program, env=environment, **more)
        numbers = [descriptor for _, descriptor in self.stored]
        environment |= {"LISTEN_FDS": str(len(numbers)), "LISTEN_FDNAMES": ":".join(name for name, _ in self.stored)}
        # At numbers that nothing else has, for the shell puts them at 3, 4, ... one after the other.
        high = [fcntl.fcntl(number, fcntl.F_DUPFD, HIGH) for number in numbers]
        script = "".join(f"exec {3 + index}<&{number} {number}<&-; " for index, number in enumerate(high))
        launched = Program(
            "-c", script + 'export LISTEN_PID=$$; exec "$@"', "bash", program, *arguments, program="/bin/bash",
            env=environment, pass_fds=high, **more)
        for descriptor in high:
            os.close(descriptor)
        return launched
