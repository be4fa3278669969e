"""TLS in memory, without a connection: encrypts and decrypts bytes.

asyncio's own TLS encrypts between the fence's check of a write and its first byte on the socket. That takes a tenth of the time of a small
write, and it needs a buffer of 256 KiB for each connection. Here a request is encrypted first, then the fence is checked, then it is sent.
"""

from __future__ import annotations

import ssl

RECORD = 16 * 1024
"""The maximum content of a TLS record (RFC 8446, section 5.1): a larger read returns no more."""


class SessionClosed(Exception):  # noqa: N818 - an end and no failure
    """The peer sends no more data. `plain`: the data before that."""

    def __init__(self, plain: bytes) -> None:
        super().__init__("the peer ended the session")
        self.plain = plain


class TLSSession:
    """A client's session.

    Send and receive its bytes in order and completely, or the session cannot be used any more.
    """

    def __init__(self, context: ssl.SSLContext, server_hostname: str) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._object = context.wrap_bio(self._incoming, self._outgoing, server_hostname=server_hostname)

    def shake(self, came: bytes | memoryview = b"") -> tuple[bool, bytes]:
        """Continue the handshake; return whether it is done, and the bytes to send.

        Raises: ssl.SSLError if it fails; then send `farewell`.
        """
        self._incoming.write(came)
        try:
            self._object.do_handshake()
        except ssl.SSLWantReadError:
            return False, self._outgoing.read()
        return True, self._outgoing.read()

    def farewell(self) -> bytes:
        """Return the remaining bytes to send: the response to a new key, or the alert of a failed handshake."""
        return self._outgoing.read() if self._outgoing.pending else b""

    def encrypt(self, plain: bytes) -> bytes:
        """Return the encrypted bytes. Raises: ssl.SSLError."""
        self._object.write(plain)  # into memory: it takes everything
        return self._outgoing.read()

    def decrypt(self, came: bytes | memoryview) -> bytes:
        """Return the decrypted bytes, empty while a record is incomplete.

        Raises: SessionClosed, ssl.SSLError.
        """
        self._incoming.write(came)
        chunks: list[bytes] = []
        try:
            while self._incoming.pending or self._object.pending():
                chunk = self._object.read(RECORD)
                if not chunk:
                    raise SessionClosed(b"".join(chunks))
                chunks.append(chunk)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            raise SessionClosed(b"".join(chunks)) from None
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)
