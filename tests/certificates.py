"""Certificates made for a test: an authority of our own, and servers that it vouches for or not."""

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_DAY = timedelta(days=1)
_FOLDER = TemporaryDirectory(prefix="pravda-certificates-")


class Authority:
    """Issues server certificates; `file` is its own, in PEM."""

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        now = datetime.now(UTC)
        builder = _builder(self._name, self._name, self._key, now - _DAY, now + _DAY)
        basic = x509.BasicConstraints(ca=True, path_length=None)
        certificate = builder.add_extension(basic, critical=True).sign(self._key, hashes.SHA256())
        self.file = Path(_FOLDER.name) / f"{name}.pem"
        self.file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def server(self, *names: str, start: int = -1, end: int = 1, self_signed: bool = False) -> ssl.SSLContext:
        """A server context with a certificate for host names or addresses, valid between two days from now."""
        key = ec.generate_private_key(ec.SECP256R1())
        now, own = datetime.now(UTC), _named(names[0])
        issuer, signer = (own, key) if self_signed else (self._name, self._key)
        builder = _builder(own, issuer, key, now + start * _DAY, now + end * _DAY)
        alternatives = x509.SubjectAlternativeName([_alternative(name) for name in names])
        certificate = builder.add_extension(alternatives, critical=False).sign(signer, hashes.SHA256())
        file = Path(_FOLDER.name) / f"{certificate.serial_number:x}.pem"
        file.write_bytes(
            certificate.public_bytes(serialization.Encoding.PEM)
            + key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context


@cache
def authority(name: str = "trusted") -> Authority:
    """The authority of that name."""
    return Authority(name)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    start: datetime,
    end: datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
    )


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
