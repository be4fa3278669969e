"""Random selectors and options of lists and watches, right and wrong: for the differential test of reads."""

from __future__ import annotations

from random import Random
from urllib.parse import quote

BLANKS = ("", "", "", "", " ", "  ", "\t", "\n")
KEYS = ("app", "tier", "x.io/part", "n", "none", "App", "in", "notin")
VALUES = ("a", "b", "", "1", "5", "x_y", "in", "notin", "exists", "a.b")
ODD = (
    "a b",
    "-a",
    "a/b/c",
    "é",
    '"a"',
    "'a'",
    "(",
    ")",
    ",",
    "=",
    "!",
    "a" * 64,
    "x" * 254 + "/a",
    "/a",
    "X.io/a",
    "a\\,b",
    "%",
    "==",
    "!=",
    ">",
    "\\",
    "in (",
    "1.5",
    "-1",
)
OPERATORS = ("=", "==", "!=", "=", " = ", "===", "=!", "<>", "=>", ">", "<", ">=")
FIELDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "configmaps": (("metadata.name", "metadata.namespace"), ("s0", "s1", "s2", "queries", "")),
    "pods": (
        ("spec.nodeName", "status.phase", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "status.podIP",
         "status.nominatedNodeName", "spec.hostNetwork", "status.podIPs"),
        ("Pending", "", "Always", "Never", "none", "default", "true", "false"),
    ),
    "secrets": (("type", "data"), ("Opaque", "kubernetes.io/basic-auth", "")),
    "gizmos": (("spec.mode", "spec.replicas", "spec.whole.a", "spec.options"), ("A", "1", "2", "", "a")),
    "events": (
        ("involvedObject.name", "reason", "type", "source", "involvedObject.kind", "reportingComponent", "involvedObject.uid"),
        ("Pod", "Made", "Normal", "Warning", "kubelet", ""),
    ),
    "services": (("spec.clusterIP", "spec.type", "spec.ports"), ("None", "ClusterIP", "")),
}  # fmt: skip
"""Of each kind that is read, what a field selector may name beside the metadata, and values."""


class Queries:
    """Selectors, and whole queries."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def blank(self) -> str:
        return self.random.choice(BLANKS) if self.chance(0.2) else ""

    def key(self) -> str:
        return self.random.choice(ODD if self.chance(0.05) else KEYS)

    def value(self) -> str:
        return self.random.choice(ODD if self.chance(0.07) else VALUES)

    def labels(self) -> str:
        return self.spoiled(",".join(self.requirement() for _ in range(self.random.choice([1, 1, 2, 3]))))

    def requirement(self) -> str:
        key = self.blank() + self.key() + self.blank()
        match self.random.randrange(6):
            case 0:
                return key
            case 1:
                return f"{self.blank()}!{key}"
            case 2 | 3:
                values = [self.blank() + self.value() + self.blank() for _ in range(self.random.randrange(4))]
                return f"{key} {self.random.choice(['in', 'notin'])} ({','.join(values)})"
            case 4:
                return f"{key}{self.random.choice('<>')}{self.random.choice(['1', '5', '-1', 'x', '1.5', '+3', '007'])}"
            case _:
                return f"{key}{self.random.choice(OPERATORS)}{self.value()}"

    def fields(self, plural: str) -> str:
        keys, values = FIELDS[plural]
        parts: list[str] = []
        for _ in range(self.random.choice([1, 1, 2, 3])):
            key = (
                self.random.choice(ODD)
                if self.chance(0.04)
                else self.random.choice([*keys, "metadata.name", "metadata.namespace"])
            )
            value = self.value() if self.chance(0.1) else self.random.choice([*values, "s0", "queries"])
            parts.append(
                f"{self.blank() if self.chance(0.2) else ''}{key}{self.random.choice(OPERATORS[:5] if self.chance(0.9) else OPERATORS)}{value}"
            )
        return self.spoiled(",".join(parts))

    def spoiled(self, text: str) -> str:
        """Return the text, now and then with a piece more or less."""
        if not self.chance(0.2):
            return text
        place = self.random.randrange(len(text) + 1)
        return text[:place] + self.random.choice([*ODD, *BLANKS, "", ""]) + text[place + self.random.randrange(3) :]

    def selectors(self, plural: str) -> dict[str, str]:
        found: dict[str, str] = {}
        if self.chance(0.6):
            found["labelSelector"] = self.labels()
        if not found or self.chance(0.3):
            found["fieldSelector"] = self.fields(plural)
        return found

    def options(self, plural: str, versions: dict[str, str], tokens: list[str]) -> dict[str, str]:
        """Return options of a read; `versions` of this server by name, `tokens` to continue with."""
        choices: dict[str, tuple[float, list[str]]] = {
            "resourceVersion": (0.4, ["", "0", "first", "last", "last", "future", "x", "-1", "1.5", "18446744073709551616", " 1"]),
            "resourceVersionMatch": (0.35, ["Exact", "NotOlderThan", "NotOlderThan", "", "exact", "Odd"]),
            "limit": (0.4, ["1", "2", "3", "500", "0", "-1", "x", "", "1.5", "9223372036854775808"]),
            "continue": (0.15, ["token", "token", "other", "", "x", "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ", "ab=="]),
            "sendInitialEvents": (0.2, ["true", "false", "", "x", "1", "True"]),
            "allowWatchBookmarks": (0.2, ["true", "false", "x", ""]),
            "watch": (0.0, []),
            "timeoutSeconds": (0.15, ["0", "5", "-1", "x", "1.5", ""]),
            "pretty": (0.1, ["true", "false", "x", ""]),
            "includeObject": (0.1, ["None", "Metadata", "Object", "Odd", ""]),
            "labelSelector": (0.1, ["app=a", "app in (a,b)", "!app", "a=b=c"]),
            "fieldSelector": (0.15, ["metadata.name=s1", "metadata.name=none", "metadata.namespace=queries", "metadata.name!=s1", "x=y"]),
            "unknown": (0.03, ["1"]),
        }  # fmt: skip
        found: dict[str, str] = {}
        for name, (share, values) in choices.items():
            if self.chance(share):
                value = self.random.choice(values)
                number = self.random.randrange(1 << 16)
                if value == "future" and number % 8:  # a read of the future waits three seconds
                    value = "last"
                if name == "resourceVersion":
                    value = versions.get(value, value)
                elif name == "continue" and value in {"token", "other"}:
                    value = tokens[number % len(tokens)] if tokens else "x"
                found[name] = value
        return found


def encoded(options: dict[str, str]) -> str:
    return "&".join(f"{name}={quote(value, safe='')}" for name, value in options.items())


ACCEPTS = (
    "application/json",
    "application/json",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/json;as=Table;v=v1;g=meta.k8s.io, application/json",
    "application/json;as=Odd;v=v1;g=meta.k8s.io",
    "application/json;as=Table;v=v2;g=meta.k8s.io,application/json;q=0.5",
    "application/json;as=Table;g=meta.k8s.io",
    "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io",
    "application/yaml",
    "*/*",
    "application/*",
    "text/html",
    "text/plain, */*;q=0.1",
    "application/json;stream=watch",
    "",
)
