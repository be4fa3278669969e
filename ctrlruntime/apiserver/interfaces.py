"""What the rooms of the embedded server know of each other.

Objects inside the server are JSON trees (`Document`); bytes are made once, when an object is stored. The registry knows resources and is
the only writer of the storage. HTTP handlers and the simulated controllers enter by the same door, `API`, so a controller's write is
defaulted, validated, counted and watched exactly like a client's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol, TypeAlias

from ctrlruntime.schema.trees import Document, copy_tree

EventType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED"]
DEFINITIONS: Final = ("apiextensions.k8s.io", "customresourcedefinitions")
NAMESPACES: Final = ("", "namespaces")
PODS: Final = ("", "pods")
"""Group and plural of resources of which several rooms know."""


@dataclass(frozen=True, slots=True)
class Change:
    """One write: `old` is the state before it (None for a create), `object` the state after it (for a delete: the last state)."""

    type: EventType
    object: Document
    old: Document | None
    revision: int


class API(Protocol):
    """The server from inside. Resources are named by group and plural (`"apps", "deployments"`; core is `""`).

    Reads answer from memory at once and return trees the caller must not change; writes raise the APIStatusError a client would get.
    """

    def get(self, group: str, resource: str, namespace: str, name: str) -> Document | None: ...

    def list(
        self, group: str, resource: str, namespace: str = "", *, labels: Mapping[str, str] | None = None
    ) -> list[Document]:
        """Return the objects of one namespace (or of all, when it is empty), sorted by namespace and name."""
        ...

    def resources(self) -> Sequence[tuple[str, str]]:
        """Return (group, plural) of every stored resource, custom ones included."""
        ...

    def watch(self, group: str, resource: str) -> AsyncIterator[Change]:
        """Yield the present objects as ADDED, then every change, in order, until the server stops."""
        ...

    def watch_all(self, *, with_present: bool = True) -> AsyncIterator[tuple[str, str, Change]]:
        """Yield (group, plural, change) of every write to any resource, the present objects first if they are wanted."""
        ...

    def plural_of(self, group: str, kind: str) -> str | None:
        """Return the plural of a kind that is served, in any version."""
        ...

    def scale(self, group: str, resource: str, namespace: str, name: str) -> Document:
        """Return the Scale of an object. Raises: APIStatusError (NotFound for a kind without one)."""
        ...

    async def set_scale(self, group: str, resource: str, namespace: str, name: str, replicas: int) -> None:
        """Change the replicas of an object through its Scale. Raises: APIStatusError."""
        ...

    async def create(self, group: str, resource: str, namespace: str, document: Document) -> Document: ...

    async def update(self, group: str, resource: str, document: Document, *, subresource: str = "") -> Document: ...

    async def merge_patch(
        self, group: str, resource: str, namespace: str, name: str, patch: Document, *, subresource: str = ""
    ) -> Document: ...

    async def bind(self, pod: Document, node: str) -> None:
        """Assign a Pod, as it was read, to a Node."""
        ...

    async def apply(
        self, group: str, resource: str, namespace: str, name: str, config: Document, *, manager: str
    ) -> Document:
        """Apply a configuration by force as a field manager of its own."""
        ...

    async def delete(
        self,
        group: str,
        resource: str,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        grace_period_seconds: int | None = None,
        propagation_policy: str | None = None,
    ) -> Document: ...


class UserIdentity(Protocol):
    """The caller: the part of a user for webhooks and managed fields."""

    @property
    def name(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def groups(self) -> Sequence[str]: ...
    @property
    def extra(self) -> Mapping[str, Sequence[str]]: ...


class Served(Protocol):
    """The served version of a kind that a request names."""

    @property
    def group(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def plural(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def namespaced(self) -> bool: ...
    @property
    def is_custom(self) -> bool: ...


Decide: TypeAlias = Callable[[UserIdentity | None, Mapping[str, str]], tuple[bool, str]]
"""Answers a question to the authorizer (`verb`, `group`, `resource`, `subresource`, `namespace`, `name`, or `path`): decision and reason.

A `user` in it is who is asked about; otherwise that is the first argument, None for the server itself."""


def allow_all(_user: UserIdentity | None, _asked: Mapping[str, str]) -> tuple[bool, str]:
    """Decide as a server without authorization."""
    return True, ""


Operation: TypeAlias = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


@dataclass(slots=True)
class Turns:
    """Which of a plugin's webhooks or policies were called for a write, and which of them have to be called again.

    Only those with reinvocationPolicy IfNeeded are in it. As apiserver's pkg/admission/plugin/webhook/mutating/reinvocationcontext.go.
    """

    called: set[Any] = field(default_factory=set[Any])
    due: set[Any] = field(default_factory=set[Any])
    last: Document | None = None
    """The object as the plugin left it, if a webhook or policy may have to be called again for another change of it."""

    def changed(self) -> None:
        """Note that the object has changed: all that were called before the change have to be called again."""
        self.due |= self.called
        self.called.clear()

    def end(self, shown: Document | None) -> None:
        """Note the object as it is after the last call of a round; the plugins after this one may change it in place."""
        if self.called and shown is not None:
            self.last = copy_tree(shown)


@dataclass(slots=True)
class Reinvocation:
    """The two rounds of mutating admission for one write."""

    is_needed: bool = False
    """A webhook or a policy has changed the object: there is a second round."""
    is_second: bool = False
    turns: dict[Any, Turns] = field(default_factory=dict[Any, Turns])
    """By plugin."""

    def begin(self, plugin: Any, shown: Document | None) -> Turns:
        """Return the turns of a plugin that is about to call for a round."""
        turns = self.turns.setdefault(plugin, Turns())
        if self.is_second and turns.called and shown != turns.last:
            turns.changed()
        return turns


@dataclass(slots=True)
class AdmissionAttributes:
    """What admission is asked about: one write, before it is stored."""

    operation: Operation
    resource: Any
    """The registry's `Resource` (a `Served`) of the request."""
    subresource: str
    kind: tuple[str, str, str]
    """Group, version and kind of the body: the resource's own, or a subresource's (Scale, Eviction, TokenRequest)."""
    namespace: str
    name: str
    object: Document | None
    old: Document | None
    user: UserIdentity | None
    dry_run: bool
    options: Document
    """The CreateOptions, UpdateOptions or DeleteOptions as a webhook sees them."""
    warnings: list[str]
    """What the answer's Warning headers will say; admission appends."""
    is_inside: bool = False
    """By one of the server's own controllers: no plugin asks for its permissions."""
    last_steps: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    """Called in the step that stores the object, when nothing else can refuse it. They can: they raise APIStatusError."""
    reinvocation: Reinvocation = field(default_factory=Reinvocation)


class Admission(Protocol):
    """Who may change or refuse a write: the webhooks."""

    def is_wanted(self, group: str, plural: str, subresource: str, operation: Operation) -> bool:
        """Return cheaply whether any webhook could match; a write without webhooks does not await."""
        ...

    async def mutate(self, attributes: AdmissionAttributes) -> Document | None:
        """Return the changed object, or None when it stays as it is. Raises: APIStatusError."""
        ...

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """Raises: APIStatusError of a denial."""
        ...


class FieldTracker(Protocol):
    """Who owns which field: sets `metadata.managedFields` of a write."""

    def track(
        self,
        resource: Any,
        live: Document | None,
        document: Document,
        *,
        manager: str,
        subresource: str,
        is_cleared: bool = False,
    ) -> None:
        """Note in `document` what `manager` set or changed against `live`; `is_cleared`: the client sent an empty list of owners."""
        ...

    def keep_times(self, document: Document, old: Document) -> None:
        """Take the old owners where nothing but times differs from the old object."""
        ...

    def apply(
        self, resource: Any, live: Document | None, config: Document, *, manager: str, force: bool, subresource: str
    ) -> Document:
        """Return the object after an apply (`live` is None: it is created). Raises: APIStatusError, e.g. Conflict."""
        ...

    def scale(
        self,
        resource: Any,
        live: Document,
        scale: Document,
        change: Callable[[Document], Document],
        *,
        manager: str,
        force: bool | None,
    ) -> tuple[Document, list[Document]]:
        """Return the Scale after a change (an apply where `force` is given) and the managedFields of the object it shows."""
        ...


class Controller(Protocol):
    """A simulated controller: runs until cancelled. `name` is what `--controllers` lists."""

    name: str

    async def run(self, api: API) -> None: ...
