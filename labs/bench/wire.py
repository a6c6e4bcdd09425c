"""A session of PostgreSQL over its socket that outlives nothing: it tells its caller that it was lost, where psql would
end. Simple queries, answers as text, no password: for the private servers of scripts/bench."""
import os
import socket
import struct

import tools

PROTOCOL = 3 << 16


class Refused(Exception):
    """The server answered with an error, and the session goes on."""


class Session:
    """Lost connections are OSErrors; the session is of no use then."""

    def __init__(self, user="postgres", timeout_s=30):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(timeout_s)
        try:
            self.socket.connect(f"{tools.PG_DIR}/.s.PGSQL.{os.environ.get('PGPORT', '5432')}")
            words = ("user", user, "database", tools.DATABASE, "application_name", "bench", "options",
                     tools.PLAIN.replace("-c ", "--"), "")
            text = b"".join(word.encode() + b"\0" for word in words)
            self.socket.sendall(struct.pack("!ii", len(text) + 8, PROTOCOL) + text)
            self.file = self.socket.makefile("rb")
            self.answer()
        except BaseException:
            self.close()
            raise

    def message(self):
        head = self.file.read(5)
        if len(head) < 5:
            raise ConnectionError("PostgreSQL has ended the session")
        kind, length = struct.unpack("!ci", head)
        body = self.file.read(length - 4)
        if len(body) < length - 4:
            raise ConnectionError("PostgreSQL has ended the session")
        return kind, body

    def answer(self):
        """The rows up to the point where the server waits for the next query."""
        rows, error = [], None
        while True:
            kind, body = self.message()
            if kind == b"Z" and error:
                raise Refused(error)
            if kind == b"Z":
                return rows
            if kind == b"D":
                rows.append(columns(body))
            if kind == b"E":
                error = ", ".join(field[1:].decode() for field in body.split(b"\0") if field[:1] in (b"C", b"M"))

    def ask(self, sql):
        text = sql.encode() + b"\0"
        self.socket.sendall(b"Q" + struct.pack("!i", len(text) + 4) + text)
        return self.answer()

    def close(self):
        self.socket.close()


def columns(body):
    """Of one row, None for NULL."""
    (count,), at, row = struct.unpack_from("!h", body), 2, []
    for _ in range(count):
        (length,) = struct.unpack_from("!i", body, at)
        row.append(None if length < 0 else body[at + 4:at + 4 + length].decode())
        at += 4 + max(0, length)
    return row
