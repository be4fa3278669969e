"""Conversion between the versions of a kind, through one of them, the hub.

You register two pure functions for each other version (a spoke). Each pair of versions then converts: spoke → hub → spoke.
`ConversionEndpoint` responds to the API server's ConversionReviews; `Conversion.convert` is for tests and migrations.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Self, TypeVar, cast

import msgspec
from pydantic import ValidationError
from typing_extensions import override

from ctrlruntime import log
from ctrlruntime.api.kind import GroupVersionKind, KindInfo
from ctrlruntime.api.meta.v1 import ObjectMeta
from ctrlruntime.api.object import Object, kind_of
from ctrlruntime.errors import ConfigError, CtrlError, DecodeError
from ctrlruntime.frames import name_of
from ctrlruntime.rest.content import UNREADABLE
from ctrlruntime.webhook.endpoint import JSON, EndpointKind, content_type_error
from ctrlruntime.webhook.limits import decode_beyond_limits

__all__ = ["Conversion", "ConversionEndpoint", "ConversionError"]

H = TypeVar("H", bound=Object)
S = TypeVar("S", bound=Object)

BODY_LIMIT: Final = 128 * 1024 * 1024
"""The maximum size of a review: the API server sends whole lists."""

_BATCH: Final = 50
"""The number of objects that are converted before the event loop runs other tasks."""

_VERSIONS: Final = ("apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1")


class ConversionError(CtrlError):
    """An object cannot be converted; the client receives the message.

    Converters may raise it too.
    """


@dataclass(frozen=True, slots=True)
class _Spoke:
    kind: type[Object]
    to_hub: Callable[[Any], Object]
    from_hub: Callable[[Any], Object]


class Conversion(Generic[H]):
    """Conversion between the versions of one kind.

    For example `Conversion(GameV1).spoke(GameV1alpha1, to_hub=up, from_hub=down)`.

    The hub should be the stored version, so that stored objects have all fields. A converter receives an object and returns a new one of
    the other version. Metadata is copied. New metadata (`ObjectMeta(annotations=…)`) adds labels and annotations. The metadata of the
    object, or a copy of it, replaces them, so that a converter can remove one. Other metadata is kept, as the API server requires.
    """

    def __init__(self, hub: type[H]) -> None:
        self.hub = hub
        self._info = kind_of(hub)
        self._spokes: dict[str, _Spoke] = {}

    @override
    def __repr__(self) -> str:
        return f"Conversion({self._info.kind}.{self._info.group}: {', '.join(kind.version for kind in self.versions)})"

    @property
    def versions(self) -> tuple[KindInfo, ...]:
        """The versions, the hub first."""
        return (self._info, *(kind_of(spoke.kind) for spoke in self._spokes.values()))

    @property
    def kinds(self) -> tuple[type[Object], ...]:
        """The classes of the versions, the hub first."""
        return (self.hub, *(spoke.kind for spoke in self._spokes.values()))

    def spoke(self, kind: type[S], *, to_hub: Callable[[S], H], from_hub: Callable[[H], S]) -> Self:
        """Add a version with both converters, and return the conversion.

        Raises: ConfigError for a version that exists, another kind, or an argument that is not a plain function.
        """
        info = kind_of(kind)
        if (info.group, info.kind) != (self._info.group, self._info.kind):
            raise ConfigError(
                f"{_shown(info)} is not a version of {_shown(self._info)}: group and kind must be the same"
            )
        if info.version in {known.version for known in self.versions}:
            raise ConfigError(
                f"{_shown(info)} is in this conversion twice. Add each version once, and the hub only in Conversion()"
            )
        for name, function in (("to_hub", to_hub), ("from_hub", from_hub)):
            if not callable(function) or inspect.iscoroutinefunction(function):
                raise ConfigError(
                    f"{name} of {_shown(info)} is {function!r}: give a plain function that returns the other version"
                )
        self._spokes[info.version] = _Spoke(kind, to_hub, from_hub)
        return self

    def convert(self, obj: Object, to: type[S]) -> S:
        """Return the object in another version.

        `obj` does not change. Raises: ConversionError, and errors of the converters.
        """
        source, target = kind_of(type(obj)).version, kind_of(to).version
        if source == target:
            return cast("S", obj.deep_copy())
        result: Object = obj.deep_copy()
        if source != self._info.version:
            result = self._step(self._find(source).to_hub, result, self.hub)
        if target != self._info.version:
            spoke = self._find(target)
            result = self._step(spoke.from_hub, result, spoke.kind)
        if not isinstance(result, to):
            raise ConversionError(
                f"{to.__qualname__} is not the class of {_shown(kind_of(to))} in this conversion; {type(result).__qualname__} is"
            )
        return result

    def convert_raw(self, raw: bytes, version: str) -> bytes:
        """Return the JSON of an object in `version`.

        It has the metadata that the API server requires.

        Raises: ConversionError, also for an object that has this version; DecodeError.
        """
        head = _read_head(raw)
        asked = GroupVersionKind.parse(head.api_version, head.kind)
        if asked.version == version:
            raise ConversionError(
                f"cannot convert to {head.api_version}: the object has this version. Request another version"
            )
        source, target = self._class_of(asked.version), self._class_of(version)
        obj = decode_beyond_limits(source, raw)  # one object that was stored before a limit was would fail whole lists
        result = self.convert(obj, target)
        tree = result.to_dict()
        tree["metadata"] = _metadata(msgspec.json.decode(head.metadata), obj, result)
        return msgspec.json.encode(tree)

    def _class_of(self, version: str) -> type[Object]:
        return self.hub if version == self._info.version else self._find(version).kind

    def _find(self, version: str) -> _Spoke:
        found = self._spokes.get(version)
        if found is None:
            known = ", ".join(kind.version for kind in self.versions)
            raise ConversionError(
                f"{self._info.kind}.{self._info.group} has no converter for version {version}; there are {known}"
            )
        return found

    def _step(self, function: Callable[[Any], Object], obj: Object, to: type[Object]) -> Object:
        own = obj.metadata
        untouched, mark = own.deep_copy(), _marked(own)
        result: object = function(obj)
        if not isinstance(result, to):
            raise ConversionError(
                f"the converter {name_of(function)} returned a {type(result).__name__}, not a {to.__qualname__}"
            )
        given = result.metadata
        is_passed_on = _is_passed_on(given, untouched, mark)
        untouched.labels = given.labels if is_passed_on else {**own.labels, **given.labels}
        untouched.annotations = given.annotations if is_passed_on else {**own.annotations, **given.annotations}
        result.metadata = untouched
        return result


_MARK: Final = "_handed_to_converter"


def _marked(metadata: ObjectMeta) -> object:
    """Put a mark on metadata that its copies (`deep_copy`, `model_copy`, `copy`) have too, and return it."""
    mark = object()
    object.__setattr__(metadata, "__pydantic_private__", {**(metadata.__pydantic_private__ or {}), _MARK: mark})
    return mark


def _is_passed_on(given: ObjectMeta, sent: ObjectMeta, mark: object) -> bool:
    """Whether a converter returned the metadata that it got, so that a label that is not there was removed.

    A copy made through the wire form has no mark. It is known by the uid and everything else of the server's; before an object
    has a uid, it cannot be told from new metadata with the same name, and then nothing may be lost.
    """
    if (given.__pydantic_private__ or {}).get(_MARK) is mark:
        return True
    return bool(sent.uid) and _without_maps(given) == _without_maps(sent)


def _without_maps(metadata: ObjectMeta) -> dict[str, Any]:
    return {name: value for name, value in metadata.to_dict().items() if name not in {"labels", "annotations"}}


def _metadata(sent: dict[str, Any], source: Object, result: Object) -> dict[str, Any]:
    # Only labels and annotations may differ from what was sent, down to how it was written.
    metadata = dict(sent)
    for name in ("labels", "annotations"):
        before, after = getattr(source.metadata, name) or {}, getattr(result.metadata, name) or {}
        if before != after:
            metadata[name] = dict(after)
    return metadata


class ConversionEndpoint:
    """Responds to ConversionReviews for any number of kinds.

    The server has one, at `/convert`.
    """

    kind: EndpointKind = "conversion"
    body_limit: int = BODY_LIMIT
    cached_kinds: Sequence[type[Object]] = ()
    """Always empty: caches are filled through conversion, so waiting for one would never end."""

    def __init__(self, conversions: Sequence[Conversion[Any]] = ()) -> None:
        self._conversions: dict[tuple[str, str], Conversion[Any]] = {}
        self.panics = 0
        self._log = log.get_logger("conversion")
        for conversion in conversions:
            self.add(conversion)

    @property
    def conversions(self) -> Sequence[Conversion[Any]]:
        return tuple(self._conversions.values())

    def add(self, conversion: Conversion[Any]) -> None:
        """Add the conversion of a kind.

        Raises: ConfigError for a second conversion, or one without a second version.
        """
        hub = conversion.versions[0]
        if len(conversion.versions) < 2:
            raise ConfigError(f"the conversion of {_shown(hub)} has no other version; add one with .spoke(…)")
        if (hub.group, hub.kind) in self._conversions:
            raise ConfigError(f"cannot add a second conversion for {hub.kind}.{hub.group}")
        self._conversions[hub.group, hub.kind] = conversion

    async def answer(self, body: bytes, *, content_type: str = JSON, timeout: float | None = None) -> bytes:
        """Return the response to a review.

        Either all objects are converted, or it is a failure that names the object.
        """
        if problem := content_type_error(content_type):
            return self.refuse(400, problem)
        try:
            review = _read_review(body)
        except UNREADABLE as error:
            return self.refuse(400, f"the body is not a ConversionReview: {error}")
        if review.kind != "ConversionReview" or review.api_version not in _VERSIONS or review.request is None:
            return self.refuse(
                400,
                f"the body is a {review.api_version!r} {review.kind!r} or has no request; a ConversionReview of {_VERSIONS[0]} is needed",
            )
        asked = review.request
        converted: list[msgspec.Raw] = []
        for position, raw in enumerate(asked.objects):
            if position and position % _BATCH == 0:
                await asyncio.sleep(0)
            try:
                converted.append(msgspec.Raw(self._convert(bytes(raw), asked.desired_api_version)))
            except Exception as error:  # noqa: BLE001 - whatever a converter raises is the answer for its object
                message = f"{_named(raw)}: {self._explain(error)}"
                self._log.warning(
                    "conversion failed", object=_named(raw), to=asked.desired_api_version, error=log.describe(error)
                )
                return _write(review.api_version, asked.uid, _failure(message))
        return _write(review.api_version, asked.uid, {"status": "Success"}, converted)

    def refuse(self, code: int, message: str) -> bytes:
        return _write(_VERSIONS[0], "", {**_failure(message), "code": code})

    def _convert(self, raw: bytes, desired: str) -> bytes:
        head = _read_head(raw)
        source, target = GroupVersionKind.parse(head.api_version, head.kind), GroupVersionKind.parse(desired, head.kind)
        if source.group != target.group:
            raise ConversionError(f"{head.api_version} cannot become {desired}: a conversion stays in its group")
        conversion = self._conversions.get((source.group, source.kind))
        if conversion is None:
            raise ConversionError(f"no conversion is registered for {source.kind}.{source.group}")
        return conversion.convert_raw(raw, target.version)

    def _explain(self, error: Exception) -> str:
        if isinstance(error, (ConversionError, DecodeError)):  # these are about the object of who asked
            return str(error)
        if isinstance(error, ValidationError):
            return f"the converter made a {error.title} that does not fit its class: {_misfits(error)}"
        self.panics += 1
        self._log.error("converter raised an unexpected exception", error=log.describe(error), exc_info=error)
        return f"the converter failed ({type(error).__name__}); the webhook's log says why"


class _Head(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: msgspec.Raw = msgspec.Raw(b"{}")


class _Request(msgspec.Struct, rename={"desired_api_version": "desiredAPIVersion"}):
    uid: str = ""
    desired_api_version: str = ""
    objects: list[msgspec.Raw] = []


class _Review(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    request: _Request | None = None


_read_review = msgspec.json.Decoder(_Review).decode
_decode_head = msgspec.json.Decoder(_Head).decode


def _read_head(raw: bytes) -> _Head:
    try:
        return _decode_head(raw)
    except UNREADABLE as error:
        raise DecodeError(f"it is not an API object: {error}", raw=raw) from error


def _named(raw: msgspec.Raw) -> str:
    try:
        head = _decode_head(raw)
        metadata: Any = msgspec.json.decode(head.metadata)
    except UNREADABLE:
        return "an object"
    names = [str(metadata[part]) for part in ("namespace", "name") if isinstance(metadata, dict) and metadata.get(part)]
    return f"{head.kind} {'/'.join(names)}".strip()


def _misfits(error: ValidationError) -> str:
    details = error.errors(include_url=False, include_context=False)
    return "; ".join(f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}" for detail in details)


def _failure(message: str) -> dict[str, Any]:
    return {"status": "Failure", "message": message}


def _write(api_version: str, uid: str, result: Mapping[str, Any], objects: Sequence[msgspec.Raw] = ()) -> bytes:
    response = {"uid": uid, "convertedObjects": list(objects), "result": dict(result)}
    return msgspec.json.encode({"kind": "ConversionReview", "apiVersion": api_version, "response": response})


def _shown(info: KindInfo) -> str:
    return f"{info.kind}.{info.version}.{info.group}"
