"""Property tests for kinds, with random objects: conversions keep all fields, defaulting is idempotent, validators do not fail.

```python
def test_conversions_keep_all_fields():
    check_round_trips(MEMCACHED_CONVERSION)


def test_defaulter_is_idempotent():
    check_defaulting(Game, GameDefaulter())


def test_validator_accepts_or_rejects_each_object():
    check_validation(Game, GameValidator())
```

Objects are generated from the classes, with the type and limits of every field. It needs hypothesis, from the extra `testing`, which is
imported when a check runs.
"""

from __future__ import annotations

import asyncio
import enum
import re
import types
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeVar, Union, cast, get_args, get_origin

import msgspec

from ctrlruntime.api.fields import wire_name, wire_names
from ctrlruntime.api.model import Model
from ctrlruntime.api.object import Object, kind_of
from ctrlruntime.errors import APIStatusError, ConfigError, DecodeError
from ctrlruntime.field import Duration, IntOrString, IntOrStringMarker, MicroTime, Quantity, Time
from ctrlruntime.markers import PreserveUnknownFields
from ctrlruntime.patch import apply_json_patch
from ctrlruntime.webhook import (
    AdmissionRequest,
    Conversion,
    Defaulter,
    Denied,
    Operation,
    Validator,
    defaulting,
    validating,
)

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy
    from pydantic.fields import FieldInfo

__all__ = ["check_defaulting", "check_round_trips", "check_validation", "lossy_fields", "objects"]

T = TypeVar("T", bound=Object)

_DEPTH: Final = 8  # levels of nested objects
_ITEMS: Final = 3  # items of a list or a mapping
_NAMES: Final = ("a", "b-1", "some-name", "x")


def objects(kind: type[T]) -> SearchStrategy[T]:
    """Return a hypothesis strategy of objects of a kind, with a name, labels, and each field of the class set or left out."""
    return cast("SearchStrategy[T]", _hypothesis().composite(_valid)(kind, _trees(kind)))


def check_round_trips(
    conversion: Conversion[Any], *, lossy: Mapping[str, Collection[str]] | None = None, examples: int = 100
) -> None:
    """Convert random objects to each other version and back, from both sides.

    After each conversion, fields that the class does not define are dropped, as the API server does: so a renamed field that a converter
    copies under its old name is lost. `lossy` has fields that may be lost, by path of conversion:
    `{"v1 → v1alpha1 → v1": [".spec.colour"]}`. Raises: AssertionError with the other lost fields.
    """
    known = lossy or {}
    found = {
        way: sorted(fields - set(known.get(way, ())))
        for way, fields in lossy_fields(conversion, examples=examples).items()
    }
    lines = [f"  {way}: {', '.join(fields)}" for way, fields in found.items() if fields]
    if lines:
        raise AssertionError(
            "these fields do not come back from a conversion. Convert them to a field that the other version defines, keep them in an "
            "annotation, or name them in `lossy`:\n" + "\n".join(lines)
        )


def lossy_fields(conversion: Conversion[Any], *, examples: int = 100) -> dict[str, set[str]]:
    """Return the lost fields, by path of conversion (`v1 → v1alpha1 → v1`); all paths are included."""
    hub, *spokes = conversion.kinds
    return {
        f"{kind_of(one).version} → {kind_of(other).version} → {kind_of(one).version}": _lost(
            conversion, one, other, examples
        )
        for spoke in spokes
        for one, other in ((hub, spoke), (spoke, hub))
    }


def check_defaulting(kind: type[T], defaulter: Defaulter[T], *, examples: int = 100) -> None:
    """Default random objects: a second call must change nothing, and the sent patch must give the defaulted object.

    For plain test functions: it runs its own event loop. Raises: AssertionError with the object.
    """
    handle = defaulting(kind, defaulter)
    with asyncio.Runner() as runner:

        def check(obj: T) -> None:
            sent = obj.to_dict()
            patched = runner.run(_patched(handle, sent))
            again = runner.run(_patched(handle, patched))
            assert again == patched, (
                f"defaulting is not idempotent for {sent}: {_differences(patched, again)} change again"
            )
            wire = kind.from_dict(sent)
            expected = kind.from_dict(runner.run(_patched(handle, wire.to_dict())))
            assert kind.from_dict(patched) == expected, f"the patch does not make the defaulted object of {sent}"

        _for_random(kind, check, examples)


def check_validation(kind: type[T], validator: Validator[T], *, examples: int = 100) -> None:
    """Validate random objects: the validator may reject them, but must not fail.

    Each object is created, updated to itself, and deleted. `Denied` and API errors such as `invalid(…)` are rejections. For plain test
    functions: it runs its own event loop. Raises: AssertionError with the object and the other exception.
    """
    handle = validating(kind, validator)
    operations: tuple[Operation, ...] = ("CREATE", "UPDATE", "DELETE")
    with asyncio.Runner() as runner:

        def check(obj: T) -> None:
            sent = msgspec.json.encode(obj.to_dict())
            for operation in operations:
                request = AdmissionRequest(
                    operation=operation,
                    name=obj.metadata.name,
                    namespace=obj.metadata.namespace,
                    object=b"" if operation == "DELETE" else sent,
                    old_object=b"" if operation == "CREATE" else sent,
                )
                try:
                    runner.run(_response(handle, request))
                except (Denied, APIStatusError):
                    continue
                except Exception as error:
                    raise AssertionError(
                        f"the validator fails at {operation} of {sent.decode()}: {type(error).__name__}: {error}"
                    ) from error

        _for_random(kind, check, examples)


async def _response(handle: Callable[[AdmissionRequest], Any], request: AdmissionRequest) -> None:
    await handle(request)


def _lost(conversion: Conversion[Any], kind: type[Object], by: type[Object], examples: int) -> set[str]:
    lost: set[str] = set()

    def check(obj: Object) -> None:
        back = _pruned(conversion.convert(_pruned(conversion.convert(obj, by)), kind))
        lost.update(_differences(_content(obj), _content(back)))

    _for_random(kind, check, examples)
    return lost


def _pruned(obj: T) -> T:
    """Return an object without the fields that its class does not define: the API server drops them from a converted object."""
    tree = obj.to_dict()
    _prune(obj, tree)
    return type(obj).from_dict(tree)


def _prune(value: Any, tree: Any) -> None:
    if isinstance(value, Model) and isinstance(tree, dict):
        kinds = type(value).model_fields
        for name in value.model_extra or ():
            del tree[name]
        for name, wire in wire_names(type(value)).items():
            if PreserveUnknownFields not in kinds[name].metadata:
                _prune(getattr(value, name), tree.get(wire))
    elif isinstance(value, dict) and isinstance(tree, dict):
        entries: dict[Any, Any] = value
        for key, inner in tree.items():
            _prune(entries.get(key), inner)
    elif isinstance(value, list) and isinstance(tree, list):
        for inner, wire in zip(value, tree, strict=True):
            _prune(inner, wire)


def _for_random(kind: type[T], check: Callable[[T], None], examples: int) -> None:
    import hypothesis

    settings = hypothesis.settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.filter_too_much],
    )
    settings(hypothesis.given(objects(kind))(check))()


async def _patched(handle: Callable[[AdmissionRequest], Any], tree: dict[str, Any]) -> dict[str, Any]:
    metadata = tree.get("metadata", {})
    request = AdmissionRequest(
        operation="CREATE",
        name=metadata.get("name", ""),
        namespace=metadata.get("namespace", ""),
        object=msgspec.json.encode(tree),
    )
    response = await handle(request)
    return cast("dict[str, Any]", apply_json_patch(tree, response.patches))


def _content(value: Any) -> Any:
    """Return what an object holds, by wire name: a field that is absent and one that holds its default are the same."""
    if isinstance(value, Model):
        fields = {wire: _content(getattr(value, name)) for name, wire in wire_names(type(value)).items()}
        return {**fields, **(value.model_extra or {})}
    if isinstance(value, dict):
        return {key: _content(inner) for key, inner in value.items()}
    return [_content(inner) for inner in value] if isinstance(value, list) else value


def _differences(before: Any, after: Any, path: str = "") -> set[str]:
    """Return the paths where two JSON trees differ, with [] for any position of a list."""
    if isinstance(before, dict) and isinstance(after, dict):
        names = {str(name) for name in (*before, *after)}
        return {found for name in names for found in _differences(before.get(name), after.get(name), f"{path}.{name}")}
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return {found for pair in zip(before, after, strict=True) for found in _differences(*pair, f"{path}[]")}
    return set() if before == after else {path or "."}


# Strategies of wire forms


def _hypothesis() -> Any:
    try:
        from hypothesis import strategies
    except ImportError as error:
        raise ConfigError(
            "properties of random objects need the package hypothesis: pip install 'ctrlruntime[testing]'"
        ) from error
    return strategies


def _valid(draw: Callable[[Any], Any], kind: type[T], trees: SearchStrategy[dict[str, Any]]) -> T:
    from hypothesis import reject

    try:
        return kind.from_dict(draw(trees))
    except DecodeError:
        # A validator of the class's own refuses it.
        reject()
        raise


def _trees(kind: type[Object]) -> SearchStrategy[dict[str, Any]]:
    st = _hypothesis()
    info = kind_of(kind)
    # Few keys, and none that a converter may keep what it cannot carry under.
    words = st.dictionaries(st.sampled_from(["random.test/a", "random.test/b"]), st.sampled_from(["", "a", "b"]))
    name = st.sampled_from(_NAMES)
    metadata: dict[str, Any] = {"name": name, "labels": words, "annotations": words}
    if info.scope == "Namespaced":
        metadata["namespace"] = name
    fields = {
        wire_name(field, found): (found.is_required(), _field(found, _DEPTH))
        for field, found in kind.model_fields.items()
        if field not in {"api_version", "kind", "metadata"}
    }
    return cast(
        "SearchStrategy[dict[str, Any]]",
        st.fixed_dictionaries(
            {
                "apiVersion": st.just(info.api_version),
                "kind": st.just(info.kind),
                "metadata": st.fixed_dictionaries({"name": metadata.pop("name")}, optional=metadata),
                **{alias: strategy for alias, (is_required, strategy) in fields.items() if is_required},
            },
            optional={alias: strategy for alias, (is_required, strategy) in fields.items() if not is_required},
        ),
    )


def _part(cls: type[Model], depth: int) -> Any:
    st = _hypothesis()
    if depth <= 0:
        return st.just({})
    required: dict[str, Any] = {}
    optional: dict[str, Any] = {}
    for name, found in cls.model_fields.items():
        (required if found.is_required() else optional)[wire_name(name, found)] = st.deferred(
            lambda found=found: _field(found, depth - 1)
        )
    return st.fixed_dictionaries(required, optional=optional)


def _field(found: FieldInfo, depth: int) -> Any:
    return _value(found.annotation, list(found.metadata), depth)


def _value(annotation: Any, limits: list[Any], depth: int) -> Any:
    st = _hypothesis()
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _value(arguments[0], [*limits, *arguments[1:]], depth)
    if any(isinstance(limit, IntOrStringMarker) for limit in limits) or annotation is IntOrString:
        return st.one_of(st.integers(0, 100), st.sampled_from(["25%", "http"]))
    if origin in {Union, types.UnionType}:
        return st.one_of(*(_value(one, limits, depth) for one in arguments if one is not type(None)))
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin in {list, tuple, set, frozenset}:
        low, high = _sizes(limits)
        item = _value(arguments[0] if arguments else Any, [], depth)
        return st.lists(
            item,
            min_size=low,
            max_size=max(low, min(high, _ITEMS)),
            unique_by=repr if origin in {set, frozenset} else None,
        )
    if origin is dict:
        low, high = _sizes(limits)
        key = st.sampled_from(_NAMES)
        return st.dictionaries(
            key, _value(arguments[-1], [], depth), min_size=low, max_size=max(low, min(high, _ITEMS))
        )
    return _plain(annotation, limits, depth)


def _plain(annotation: Any, limits: list[Any], depth: int) -> Any:
    st = _hypothesis()
    if not isinstance(annotation, type):
        return st.sampled_from([None, True, 1, "a"])
    if issubclass(annotation, Model):
        return _part(annotation, depth)
    if issubclass(annotation, enum.Enum):
        return st.sampled_from([one.value for one in annotation])
    scalars: dict[type[Any], Callable[[], Any]] = {
        bool: st.booleans,
        int: lambda: _integers(limits),
        float: lambda: _integers(limits).map(float),
        str: lambda: _texts(limits),
        bytes: lambda: st.sampled_from(["", "YQ=="]),
        Quantity: lambda: st.sampled_from(["0", "100m", "1", "1.5Gi"]),
        Duration: lambda: st.sampled_from(["0s", "1m30s"]),
        MicroTime: lambda: st.just("2026-01-02T03:04:05.000006Z"),
        Time: lambda: st.just("2026-01-02T03:04:05Z"),
    }
    found = scalars.get(annotation)
    return st.sampled_from([None, True, 1, "a"]) if found is None else found()


def _integers(limits: list[Any]) -> Any:
    st = _hypothesis()
    low, high, step = -(2**31), 2**31 - 1, 1
    for limit in limits:
        low = max(
            low, *(value for value in (_limit(limit, "ge"), _above(_limit(limit, "gt"))) if value is not None), low
        )
        high = min(
            high, *(value for value in (_limit(limit, "le"), _below(_limit(limit, "lt"))) if value is not None), high
        )
        step = getattr(limit, "multiple_of", None) or step
    if step == 1:
        return st.integers(low, high)
    return st.integers(-(-low // step), high // step).map(lambda value: value * step)


def _limit(limit: Any, name: str) -> int | None:
    value = getattr(limit, name, None)
    return None if value is None else int(value)


def _above(value: int | None) -> int | None:
    return None if value is None else value + 1


def _below(value: int | None) -> int | None:
    return None if value is None else value - 1


def _texts(limits: list[Any]) -> Any:
    st = _hypothesis()
    low, high = _sizes(limits)
    patterns = [str(pattern) for limit in limits if (pattern := getattr(limit, "pattern", None)) is not None]
    if patterns:
        texts = st.from_regex(re.compile(patterns[0], re.ASCII))
        return texts.filter(lambda text: low <= len(text) <= high and "\n" not in text)
    return st.text(
        st.characters(codec="utf-8", exclude_categories=("Cs",)), min_size=low, max_size=max(low, min(high, 8))
    )


def _sizes(limits: list[Any]) -> tuple[int, int]:
    low, high = 0, 2**31
    for limit in limits:
        low = max(low, getattr(limit, "min_length", None) or 0)
        found = getattr(limit, "max_length", None)
        high = high if found is None else min(high, found)
    return low, high
