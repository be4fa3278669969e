"""The key that signs service account tokens: JSON Web Tokens by RS256 or ES256 and its larger curves.

`cryptography` is imported when the key is created, so a server without token requests does not pay for it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ctrlruntime.errors import ConfigError

if TYPE_CHECKING:
    from typing import TypeAlias

    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    PublicKey: TypeAlias = ec.EllipticCurvePublicKey | rsa.RSAPublicKey

_CURVES: Final = {"secp256r1": ("P-256", "ES256"), "secp384r1": ("P-384", "ES384"), "secp521r1": ("P-521", "ES512")}
_BLOCK: Final = re.compile(rb"-----BEGIN [A-Z0-9 ]+-----.*?-----END [A-Z0-9 ]+-----\s*", re.DOTALL)
_HOW_PUBLIC: Final = "Use the PEM of RSA or P-256 keys, public or private, or of certificates"
_HOW: Final = "Use the PEM of an RSA key or of a P-256 key, without a passphrase"


class VerifyingKey:
    """A public key with the name (`kid`) and the algorithm that tokens signed by its owner carry.

    Raises: ConfigError for a key on a curve that no token is signed on.

    """

    def __init__(self, public: PublicKey) -> None:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        self._public = public
        der = public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        self.id: str = encode_part(hashlib.sha256(der).digest())
        if isinstance(public, ec.EllipticCurvePublicKey):
            if public.curve.name not in _CURVES:
                raise ConfigError(f"cannot sign service account tokens with a {public.curve.name} key. {_HOW}")
            self.algorithm = _CURVES[public.curve.name][1]
        else:
            self.algorithm = "RS256"

    def has_signed(self, signed: bytes, signature: bytes, algorithm: str) -> bool:
        """Tell whether a signature is this key's; one of another algorithm never is."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric import ec, padding
        from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

        if algorithm != self.algorithm:
            return False
        try:
            if isinstance(self._public, ec.EllipticCurvePublicKey):
                size = _coordinate_size(self._public)
                if len(signature) != 2 * size:
                    return False
                r, s = int.from_bytes(signature[:size]), int.from_bytes(signature[size:])
                self._public.verify(encode_dss_signature(r, s), signed, ec.ECDSA(_digest(self.algorithm)))
            else:
                self._public.verify(signature, signed, padding.PKCS1v15(), _digest(self.algorithm))
        except InvalidSignature:
            return False
        return True

    def jwk(self) -> dict[str, str]:
        """Return the public key as a JSON Web Key."""
        from cryptography.hazmat.primitives.asymmetric import ec

        public = self._public
        if isinstance(public, ec.EllipticCurvePublicKey):
            size = _coordinate_size(public)
            numbers = public.public_numbers()
            return {
                "use": "sig",
                "kty": "EC",
                "kid": self.id,
                "crv": _CURVES[public.curve.name][0],
                "alg": self.algorithm,
                "x": encode_part(numbers.x.to_bytes(size)),
                "y": encode_part(numbers.y.to_bytes(size)),
            }
        parts = public.public_numbers()
        return {
            "use": "sig",
            "kty": "RSA",
            "kid": self.id,
            "alg": self.algorithm,
            "n": encode_part(parts.n.to_bytes((parts.n.bit_length() + 7) // 8)),
            "e": encode_part(parts.e.to_bytes((parts.e.bit_length() + 7) // 8)),
        }


class SigningKey(VerifyingKey):
    """A private key: it also makes the tokens.

    Args:
        pem: the private key, not encrypted; None makes a P-256 key.

    Raises: ConfigError for a key that cannot sign tokens.

    """

    def __init__(self, pem: bytes | None = None) -> None:
        from cryptography.hazmat.primitives.asymmetric import ec

        self._key = ec.generate_private_key(ec.SECP256R1()) if pem is None else _load(pem)
        super().__init__(self._key.public_key())

    @property
    def pem(self) -> bytes:
        """The private key, PEM (PKCS 8, not encrypted)."""
        from cryptography.hazmat.primitives import serialization

        return self._key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )

    def sign(self, claims: Mapping[str, Any]) -> str:
        """Return a token that carries the claims."""
        head = encode_part(_json({"alg": self.algorithm, "kid": self.id}))
        signed = f"{head}.{encode_part(_json(claims))}"
        return f"{signed}.{encode_part(self._signature(signed.encode()))}"

    def _signature(self, signed: bytes) -> bytes:
        from cryptography.hazmat.primitives.asymmetric import ec, padding
        from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

        digest = _digest(self.algorithm)
        if isinstance(self._key, ec.EllipticCurvePrivateKey):
            size = _coordinate_size(self._key.public_key())
            r, s = decode_dss_signature(self._key.sign(signed, ec.ECDSA(digest)))
            return r.to_bytes(size) + s.to_bytes(size)
        return self._key.sign(signed, padding.PKCS1v15(), digest)


def read_keys(pem: bytes) -> list[VerifyingKey]:
    """Return the public keys of a PEM file: of public keys, private keys and certificates. Raises: ConfigError."""
    blocks = _BLOCK.findall(pem)
    if not blocks:
        raise ConfigError(f"cannot read a key that verifies service account tokens: it is not PEM. {_HOW_PUBLIC}")
    return [VerifyingKey(_load_public(block)) for block in blocks]


def encode_part(raw: bytes) -> str:
    """Return bytes as a token's parts hold them: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def decode_part(text: str) -> bytes:
    """Return the bytes of a token's part. Raises: ValueError."""
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


def _load(pem: bytes) -> ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(pem, password=None)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"cannot read the key that signs service account tokens: {error}. {_HOW}") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise ConfigError(f"cannot sign service account tokens with a {type(key).__name__}. {_HOW}")
    return key


def _load_public(block: bytes) -> PublicKey:
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    from cryptography.hazmat.primitives.serialization import load_pem_public_key
    from cryptography.x509 import load_pem_x509_certificate

    if b"PRIVATE KEY" in block:
        return _load(block).public_key()
    try:
        is_certificate = b"CERTIFICATE" in block
        key = load_pem_x509_certificate(block).public_key() if is_certificate else load_pem_public_key(block)
    except (ValueError, TypeError) as error:
        text = f"cannot read a key that verifies service account tokens: {error}. {_HOW_PUBLIC}"
        raise ConfigError(text) from error
    if not isinstance(key, ec.EllipticCurvePublicKey | rsa.RSAPublicKey):
        raise ConfigError(f"cannot verify service account tokens with a {type(key).__name__}. {_HOW_PUBLIC}")
    return key


def _coordinate_size(key: ec.EllipticCurvePublicKey) -> int:
    return (key.curve.key_size + 7) // 8


def _digest(algorithm: str) -> hashes.HashAlgorithm:
    from cryptography.hazmat.primitives import hashes

    return {"ES384": hashes.SHA384, "ES512": hashes.SHA512}.get(algorithm, hashes.SHA256)()


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
