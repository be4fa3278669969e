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

    `ticket`, from an earlier session with the same context and host name, shortens the handshake if the server accepts it.
    """

    def __init__(self, context: ssl.SSLContext, server_hostname: str, ticket: ssl.SSLSession | None = None) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._object = context.wrap_bio(self._incoming, self._outgoing, server_hostname=server_hostname, session=ticket)

    @property
    def was_resumed(self) -> bool:
        """Whether the server accepted the ticket."""
        return bool(self._object.session_reused)

    @property
    def ticket(self) -> ssl.SSLSession | None:
        """The ticket for the next session, if the server has sent one. With TLS 1.3 it comes with the first response."""
        session = self._object.session
        return session if session is not None and session.has_ticket else None

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
