"""TLS on one connection, without the connection: what came in goes through a session and comes out plain, and the other way round.

asyncio's own TLS stands between a request and its socket: between the moment at which somebody asks whether a write may still be made and
the moment at which its bytes leave, it takes a tenth of the time a small write takes, and it holds a buffer of 256 KiB for each connection.
With the session in our hands a request is encrypted first; then it is asked; then it leaves.
"""

from __future__ import annotations

import ssl

RECORD = 16 * 1024
"""The most that a TLS record holds (RFC 8446, section 5.1): a read for more returns no more."""


class SessionClosed(Exception):  # noqa: N818 - an end and no failure
    """The peer has said that nothing more comes. `plain`: what came before it said so."""

    def __init__(self, plain: bytes) -> None:
        super().__init__("the peer ended the session")
        self.plain = plain


class TLSSession:
    """A client's session. Its bytes are to be sent and received in order, all of them, or the session is of no use any more."""

    def __init__(self, context: ssl.SSLContext, server_hostname: str) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._object = context.wrap_bio(self._incoming, self._outgoing, server_hostname=server_hostname)

    def shake(self, came: bytes | memoryview = b"") -> tuple[bool, bytes]:
        """Go on with the handshake; return whether it is done, and what is to be sent.

        Raises: ssl.SSLError when it fails; `farewell` is then to be sent.
        """
        self._incoming.write(came)
        try:
            self._object.do_handshake()
        except ssl.SSLWantReadError:
            return False, self._outgoing.read()
        return True, self._outgoing.read()

    def farewell(self) -> bytes:
        """Return what is left to be sent: the answer to a new key, the alert that says why a handshake failed."""
        return self._outgoing.read() if self._outgoing.pending else b""

    def encrypt(self, plain: bytes) -> bytes:
        """Return what to send. Raises: ssl.SSLError."""
        self._object.write(plain)  # into memory: it takes everything
        return self._outgoing.read()

    def decrypt(self, came: bytes | memoryview) -> bytes:
        """Return what it says, empty while a record is incomplete. Raises: SessionClosed, ssl.SSLError."""
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
