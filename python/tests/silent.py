"""A file system with one file, served by FUSE, that falls silent when it is told to: a program of its own.

A process that waits for a server that it is itself may not even be killed. Commands are bytes of the input: `s` falls silent, `a` answers
again, the end ends it. Each is answered by `k`; `?` says that a question was held back.
"""

import errno
import os
import struct
import sys
import threading

CONTENT = bytes(range(250)) * 400

# Of linux/fuse.h.
HEAD = "=IIQQIIII"
LOOKUP, GETATTR, OPEN, READ, STATFS, RELEASE, INIT = 1, 3, 14, 15, 17, 18, 26
# FORGET, INTERRUPT, BATCH_FORGET.
UNANSWERED = {2, 36, 42}


def attributes(node):
    size, mode = (0, 0o40755) if node == 1 else (len(CONTENT), 0o100444)
    return struct.pack("=6Q10I", node, size, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def reply(opcode, node, body):
    if opcode == INIT:
        return 0, struct.pack("=4I2H2I2H8I", 7, 31, 65536, 0, 16, 12, 65536, 1, 0, 0, *[0] * 8)
    if opcode == LOOKUP:
        return 0, struct.pack("=4Q2I", 2, 0, 0, 0, 0, 0) + attributes(2)
    if opcode == GETATTR:
        return 0, struct.pack("=Q2I", 0, 0, 0) + attributes(node)
    if opcode == READ:
        _, offset, size = struct.unpack_from("=2QI", body)
        return 0, CONTENT[offset : offset + size]
    answers = {OPEN: bytes(16), STATFS: bytes(80), RELEASE: b""}
    return (0, answers[opcode]) if opcode in answers else (-errno.ENOSYS, b"")


class Server:
    """While it is silent, no question for attributes is answered."""

    def __init__(self, channel):
        self.channel, self.lock = channel, threading.Lock()
        self.is_silent, self.held = False, []

    def serve(self):
        while request := os.read(self.channel, 2 << 20):
            _, opcode, number, node, *_ = struct.unpack_from(HEAD, request)
            with self.lock:
                if opcode == GETATTR and self.is_silent:
                    self.held.append((opcode, number, node, b""))
                    if len(self.held) == 1:
                        os.write(1, b"?")
                elif opcode not in UNANSWERED:
                    self.answer(opcode, number, node, request[40:])

    def answer(self, opcode, number, node, body):
        error, data = reply(opcode, node, body)
        try:
            os.write(self.channel, struct.pack("=IiQ", 16 + len(data), error, number) + data)
        except OSError:
            # The request was interrupted, and is gone.
            pass

    def command(self, which):
        with self.lock:
            self.is_silent = which == b"s"
            held, self.held = self.held, []
            for one in held:
                self.answer(*one)
            os.write(1, b"k")


if __name__ == "__main__":
    server = Server(int(sys.argv[1]))
    threading.Thread(target=server.serve, daemon=True).start()
    while command := os.read(0, 1):
        server.command(command)
    os._exit(0)
