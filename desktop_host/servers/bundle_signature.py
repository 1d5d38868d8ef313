"""Whether a bundle is what its signer signed: a detached PKCS#7 signature after the zip (`MCPB_SIG_V1`).

What is told: the signature fits the contents and the certificate that came along, and whose name that certificate
bears. What is not told: that anybody vouches for this name; most are signed by themselves.
"""

from __future__ import annotations

import hashlib
import struct
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MARK, END = b"MCPB_SIG_V1", b"MCPB_SIG_END"
LARGEST = 2**20
"""Bytes of a signature."""
LARGEST_FILE = 512 * 2**20
"""Larger bundles are not judged: they are read whole for it."""
_HASHES = {
    b"\x2b\x0e\x03\x02\x1a": "sha1", b"\x60\x86\x48\x01\x65\x03\x04\x02\x01": "sha256",
    b"\x60\x86\x48\x01\x65\x03\x04\x02\x02": "sha384", b"\x60\x86\x48\x01\x65\x03\x04\x02\x03": "sha512",
}  # fmt: skip
_MESSAGE_DIGEST = b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x04"


@dataclass(frozen=True, slots=True)
class Signature:
    """What is known of a bundle's signature."""

    fits: bool | None
    """None: it is of a kind that cannot be judged here."""
    signer: str = ""
    """The name in the certificate."""
    own: bool = True
    """The certificate vouches for itself; False: somebody else issued it (whom nobody checked)."""


def signature_of(path: Path) -> Signature:
    """Judge the signature of a file. Blocking: reads it whole.

    Raises:
        OSError: it cannot be read.
    """
    parts = split(path.read_bytes()) if path.stat().st_size <= LARGEST_FILE else None
    if parts is None:
        return Signature(None)
    content, signature = parts
    seen = judge(content, signature)
    if seen.fits is False and content[-22:-18] == b"PK\5\6":
        # Newer packers then write the signature's length into the zip's end, where a comment's length stands.
        seen = judge(content[:-2] + b"\0\0", signature)
    return seen


def split(data: bytes) -> tuple[bytes, bytes] | None:
    """The zip and the signature of a file; None where it carries none."""
    at = data.rfind(MARK)
    if at < 0 or not data.rstrip(b"\0\r\n").endswith(END):
        return None
    (length,) = struct.unpack_from("<I", data, at + len(MARK)) if len(data) >= at + len(MARK) + 4 else (0,)
    start = at + len(MARK) + 4
    return data[:at], data[start : start + min(length, LARGEST)]


def judge(content: bytes, signature: bytes) -> Signature:
    """Whether a detached signature fits these contents. Never fails: what cannot be read cannot be judged."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.x509 import InvalidVersion

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # A certificate that is read leniently is none that is trusted.
            return _judged(content, signature)
    except (Warning, ValueError, IndexError, TypeError, KeyError, UnsupportedAlgorithm, InvalidVersion):
        return Signature(None)


def _judged(content: bytes, signature: bytes) -> Signature:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
    from cryptography.hazmat.primitives.serialization.pkcs7 import load_der_pkcs7_certificates

    certificates = load_der_pkcs7_certificates(signature)
    signed_data = _inside(_inside(_inside(signature)[0][1])[1][1])[0]
    signer = _inside(_inside(signed_data[1])[-1][1])[0]
    fields = _inside(signer[1])
    serial = int.from_bytes(_inside(fields[1][1])[1][1], "big")
    owner = [c for c in certificates if c.serial_number == serial][0]  # noqa: RUF015  (StopIteration would hang a thread)
    name = _HASHES[_inside(fields[2][1])[0][1]]
    attributes = fields[3] if fields[3][0] == 0xA0 else None
    value = fields[5 if attributes else 4][1]
    digest = hashlib.new(name, content).digest()
    algorithm: hashes.HashAlgorithm = getattr(hashes, name.upper())()
    told = Signature(False, _name_of(owner.subject), owner.issuer == owner.subject)
    if attributes is not None:
        kept = [_inside(one[1]) for one in _inside(attributes[1])]
        if digest not in [_inside(v[1])[0][1] for oid, v in kept if oid[1] == _MESSAGE_DIGEST]:
            return told
        signed = b"\x31" + attributes[2][1:]  # They are signed as the set that they are.
    else:
        signed = content
    key = owner.public_key()
    try:
        if isinstance(key, rsa.RSAPublicKey):
            key.verify(value, signed, padding.PKCS1v15(), algorithm)
        elif isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(value, signed, ec.ECDSA(algorithm))
        else:
            return Signature(None, told.signer, told.own)
    except InvalidSignature:
        return told
    return Signature(True, told.signer, told.own)


def _name_of(subject: object) -> str:
    from cryptography import x509

    if not isinstance(subject, x509.Name):
        return ""
    for kind in (x509.NameOID.COMMON_NAME, x509.NameOID.ORGANIZATION_NAME):
        if found := subject.get_attributes_for_oid(kind):
            return str(found[0].value)[:200]
    return subject.rfc4514_string()[:200]


Part = tuple[int, bytes, bytes]
"""Tag, contents, and the whole, of one DER value."""


def _inside(data: bytes) -> list[Part]:
    return list(_each(data))


def _each(data: bytes) -> Iterator[Part]:
    at = 0
    while at < len(data):
        start, tag, length = at, data[at], data[at + 1]
        at += 2
        if length & 0x80:
            wide = length & 0x7F
            if not 0 < wide <= 4:
                raise ValueError("no DER")
            length = int.from_bytes(data[at : at + wide], "big")
            at += wide
        if at + length > len(data):
            raise ValueError("cut off")
        yield tag, data[at : at + length], data[start : at + length]
        at += length
