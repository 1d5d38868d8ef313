"""The real PostgreSQL on a temporary data folder and a free port, with passwords and TLS."""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PASSWORD = "p@ss/w:ö rd%#"
"""Of the user `host`: every character that an address cannot hold as it is."""
_CONF = """
listen_addresses = '127.0.0.1'
port = {port}
unix_socket_directories = '{folder}'
max_connections = 60
shared_buffers = 32MB
fsync = {fsync}
ssl = on
ssl_cert_file = '{folder}/server.crt'
ssl_key_file = '{folder}/server.key'
password_encryption = scram-sha-256
log_min_messages = warning
"""
_HBA = """
local all postgres trust
hostssl all only_tls 127.0.0.1/32 scram-sha-256
hostnossl all only_tls 127.0.0.1/32 reject
host all all 127.0.0.1/32 scram-sha-256
"""


def binaries() -> Path | None:
    """The folder with `initdb` and `postgres`; Debian keeps them out of PATH."""
    for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        if (folder / "initdb").exists():
            return folder
    found = shutil.which("initdb")
    return Path(found).resolve().parent if found else None


class PostgresServer:
    """A server of this test run. As root it runs as the user `postgres`, since it refuses to run as root."""

    def __init__(self, folder: Path, bin_folder: Path, *, fsync: bool = False) -> None:
        self.folder = folder
        self._bin = bin_folder
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)
        self.emptied_name = ""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:
            entry = pwd.getpwnam("postgres")
            self._as = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
            os.chown(folder, entry.pw_uid, entry.pw_gid)
        subprocess.run(
            [bin_folder / "initdb", "-D", folder / "data", "-U", "postgres", "-E", "UTF8", "--locale=C", "-A", "trust",
             "--no-sync"],
            check=True, capture_output=True, cwd=folder, **self._as,
        )  # fmt: skip
        certificate(folder)
        conf = _CONF.format(port=self.port, folder=folder, fsync="on" if fsync else "off")
        for name, text in (("postgresql.conf", conf), ("pg_hba.conf", _HBA)):
            (folder / "data" / name).write_text(text)
        if self._as:
            for path in folder.glob("server.*"):
                os.chown(path, self._as["user"], self._as["group"])
        self.start()
        self.admin(f"CREATE ROLE host LOGIN PASSWORD {_literal(PASSWORD)}")
        self.admin(f"CREATE ROLE only_tls LOGIN PASSWORD {_literal(PASSWORD)}")

    def start(self) -> None:
        """Start and wait until it answers."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._bin / "postgres", "-D", self.folder / "data"], stdout=log, stderr=log, cwd=self.folder,
                **self._as,
            )  # fmt: skip
        until = time.monotonic() + 30
        while True:
            ready = subprocess.run(
                [self._bin / "pg_isready", "-q", "-h", self.folder, "-p", str(self.port)], check=False
            )
            if ready.returncode == 0:
                return
            if self._process.poll() is not None or time.monotonic() > until:
                raise RuntimeError((self.folder / "log").read_text())
            time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """End it: SIGINT hangs up on everybody, SIGQUIT drops all at once as a crash does."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(30)
            self._process = None

    def admin(self, statement: str, database: str = "postgres") -> list[Any]:
        """Run a statement as the server's owner, over the socket."""
        import psycopg

        with psycopg.connect(
            host=str(self.folder), port=self.port, user="postgres", dbname=database, autocommit=True
        ) as db:
            cursor = db.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def database(self, owner: str = "host", options: str = "") -> str:
        """Make an empty database and return its name."""
        name = f"record_{os.getpid()}_{next(self._numbers)}"
        self.admin(f"CREATE DATABASE {name} OWNER {owner} {options}")
        return name

    def emptied(self) -> dict[str, str]:
        """Parameters of one database that is emptied each time: quicker than a new one."""
        if not self.emptied_name:
            self.emptied_name = self.database()
        self.admin("DROP SCHEMA IF EXISTS desktop_host CASCADE", self.emptied_name)
        return self.params(self.emptied_name)

    def params(self, database: str | None = None, **more: str) -> dict[str, str]:
        """What a client connects with; a new database if none is named."""
        return {
            "host": "127.0.0.1", "port": str(self.port), "user": "host", "password": PASSWORD,
            "dbname": database or self.database(),
        } | more  # fmt: skip

    def url(self, database: str | None = None, password: str = "${TEST_PG_PASSWORD}", query: str = "") -> str:
        """The address as settings have it."""
        return f"postgresql://host:{password}@127.0.0.1:{self.port}/{database or self.database()}{query}"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def certificate(folder: Path) -> None:
    """`server.crt` (its own authority) and `server.key` for 127.0.0.1."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    (folder / "server.crt").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    handle = os.open(folder / "server.key", os.O_CREAT | os.O_WRONLY, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )


@contextlib.contextmanager
def running(*, fsync: bool = False) -> Iterator[PostgresServer]:
    """A server for as long as the context lasts.

    Raises:
        LookupError: PostgreSQL is not installed.
    """
    found = binaries()
    if found is None:
        raise LookupError("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    folder = Path(tempfile.mkdtemp(prefix="desktop-host-pg-"))
    server = None
    try:
        server = PostgresServer(folder, found, fsync=fsync)
        yield server
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)
