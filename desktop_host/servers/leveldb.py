"""Reads one value out of a LevelDB folder that another program owns: no lock is taken, nothing is written.

Formats: `doc/log_format.md`, `doc/table_format.md` of LevelDB, and the raw format of Snappy. The newest write of a key
wins, whichever file it stands in; what is damaged or half written is passed over.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

LARGEST = 64 * 2**20
"""Bytes of a file, and of a value, that are still read."""
_BLOCK = 32_768
_MAGIC = 0xDB4775248B80FB57
_FULL, _FIRST, _LAST = 1, 2, 4


def newest(folder: Path, ending: bytes) -> bytes | None:
    """The newest value of the key that ends so; None where there is none, or where it was deleted. Blocking.

    Raises:
        OSError: a file cannot be read.
    """
    best: tuple[int, bytes | None] = (-1, None)
    for path in sorted(folder.iterdir()):
        if path.suffix not in (".log", ".ldb", ".sst") or path.stat().st_size > LARGEST:
            continue
        data = path.read_bytes()
        for sequence, key, value in _log(data) if path.suffix == ".log" else _table(data):
            if key.endswith(ending) and sequence >= best[0]:
                best = (sequence, value)
    return best[1]


def _log(data: bytes) -> Iterator[tuple[int, bytes, bytes | None]]:
    batch = b""
    for start in range(0, len(data), _BLOCK):
        block, at = data[start : start + _BLOCK], 0
        while at + 7 <= len(block):
            length, kind = struct.unpack_from("<HB", block, at + 4)
            part = block[at + 7 : at + 7 + length]
            at += 7 + length
            if not kind or len(part) < length:
                break
            batch = part if kind in (_FULL, _FIRST) else batch + part
            if kind in (_FULL, _LAST):
                yield from _batch(batch)
                batch = b""


def _batch(data: bytes) -> Iterator[tuple[int, bytes, bytes | None]]:
    if len(data) < 12:
        return
    sequence, count = struct.unpack_from("<QI", data)
    at = 12
    try:
        for n in range(count):
            kind, at = data[at], at + 1
            key, at = _slice(data, at)
            value: bytes | None = None
            if kind == 1:
                value, at = _slice(data, at)
            yield sequence + n, key, value
    except (IndexError, ValueError):
        return  # The end of a write that was cut off.


def _table(data: bytes) -> Iterator[tuple[int, bytes, bytes | None]]:
    if len(data) < 48 or struct.unpack_from("<Q", data, len(data) - 8)[0] != _MAGIC:
        return
    try:
        at = len(data) - 48
        _, at = _number(data, at)
        _, at = _number(data, at)
        offset, at = _number(data, at)
        size, _ = _number(data, at)
        index = list(_entries(_unpacked(data, offset, size)))
    except (IndexError, ValueError):
        return
    for _key, handle in index:
        try:
            offset, at = _number(handle, 0)
            size, _ = _number(handle, at)
            for key, value in _entries(_unpacked(data, offset, size)):
                tag = struct.unpack_from("<Q", key, len(key) - 8)[0]
                yield tag >> 8, key[:-8], value if tag & 0xFF == 1 else None
        except (IndexError, ValueError, struct.error):
            continue  # A damaged block costs itself alone.


def _unpacked(data: bytes, offset: int, size: int) -> bytes:
    block = data[offset : offset + size]
    return _snappy(block) if data[offset + size] == 1 else block


def _entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    end = len(block) - 4 - 4 * int(struct.unpack_from("<I", block, len(block) - 4)[0])
    at, key = 0, b""
    while at < end:
        shared, at = _number(block, at)
        own, at = _number(block, at)
        length, at = _number(block, at)
        key = key[:shared] + block[at : at + own]
        at += own
        yield key, block[at : at + length]
        at += length


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A base-128 number and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("too long")


def _slice(data: bytes, at: int) -> tuple[bytes, int]:
    length, at = _number(data, at)
    if at + length > len(data):
        raise ValueError("cut off")
    return data[at : at + length], at + length


def _snappy(data: bytes) -> bytes:
    size, at = _number(data, 0)
    if size > LARGEST:
        raise ValueError("too large")
    out = bytearray()
    while at < len(data):
        tag, at = data[at], at + 1
        kind = tag & 3
        if kind == 0:
            length = (tag >> 2) + 1
            if length > 60:
                more = length - 60
                length, at = int.from_bytes(data[at : at + more], "little") + 1, at + more
            out += data[at : at + length]
            at += length
        else:
            if kind == 1:
                length, back, at = ((tag >> 2) & 7) + 4, (tag & 0xE0) << 3 | data[at], at + 1
            else:
                wide = 2 if kind == 2 else 4
                length, back, at = (tag >> 2) + 1, int.from_bytes(data[at : at + wide], "little"), at + wide
            if not 0 < back <= len(out):
                raise ValueError("damaged")
            for _ in range(length):
                out.append(out[-back])
        if len(out) > size:
            raise ValueError("larger than it said")
    if len(out) != size:
        raise ValueError("shorter than it said")
    return bytes(out)
