"""Hostile input to the command line: names, project files, kustomizations, bundles, catalogs, kubeconfigs.

Whatever stands at any place of a good document, a command does its work or ends with one clean error and a documented exit code;
nothing of the input runs, and nothing is written outside of the folder that the command is about.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import copy
import itertools
import json
import os
import shutil
import tomllib
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import tomlkit
import yaml
from bundles import CSV, good
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from ctrlruntime.cli import ctrl
from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.text import dump, dump_all
from ctrlruntime.olm.bundle import read_bundle
from ctrlruntime.olm.catalog import render as catalog_of
from ctrlruntime.project.project_file import read_project_file
from ctrlruntime.project.scaffold import new_project, scaffold_files, take_over
from ctrlruntime.project.settings import read_settings
from ctrlruntime.rest.config import get_config

CODE = '__import__("builtins").hostile()'
TEXTS = [
    CODE,
    f'"""\n{CODE}\n"""',
    f"'\n{CODE}\n#",
    f"{{{{ {CODE} }}}}{{% for x in y %}}",
    f"!!python/object/apply:builtins.hostile []\n---\n{CODE}",
    "$(touch PWNED); `touch PWNED` | touch PWNED",
    "a\nb: c\n- d",
    '"',
    "\\",
    "../../PWNED",
    "/proc/self/PWNED",
    "~/PWNED",
    "a\x00b",
    "class",
    "None",
    "ﬁeld",
    "\uff21",
    "a\x85b\u2028c\rd\x1b[2J",
    "\u202e",
    "\ud800",
    "\udcff",
    "-v",
    "--help",
    "",
    " ",
    "x" * 5000,
    "(((",
    "1e999",
    "99999999999999999999",
]
SHAPES: list[Any] = [
    None,
    True,
    0,
    -1,
    2**70,
    1.5,
    1e300,
    [],
    {},
    [None],
    ["a"],
    [[]],
    [{}],
    {"a": None},
    {"": ""},
    {CODE: CODE},
    [CODE],
]
EVIL = [*TEXTS, *SHAPES]

words = st.sampled_from(TEXTS) | st.text(max_size=10)
anything = st.recursive(
    words | st.sampled_from(SHAPES) | st.integers() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)


def places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    children = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for step, child in children:
        yield from places(child, (*path, step))


def with_value(tree: Any, place: tuple[Any, ...], value: Any) -> Any:
    tree = copy.deepcopy(tree)
    parent = tree
    for step in place[:-1]:
        parent = parent[step]
    parent[place[-1]] = value
    return tree


@st.composite
def hostile(draw: st.DrawFn, tree: Any) -> Any:
    """The tree with up to three places where anything stands, or a key is anything."""
    tree = copy.deepcopy(tree)
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.sampled_from(list(places(tree)) or [()]))
        if not place:
            break
        parent = tree
        for step in place[:-1]:
            parent = parent[step]
        if isinstance(parent, dict) and draw(st.booleans()):
            parent[draw(words)] = parent.pop(place[-1])
        else:
            old = parent[place[-1]]
            parent[place[-1]] = draw(anything | st.just([old]) | st.just({CODE: old}))
    return tree


ran: list[str] = []


@pytest.fixture(autouse=True)
def watch(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What the code in the input would call."""
    monkeypatch.setattr(builtins, "hostile", lambda: ran.append("hostile"), raising=False)
    ran.clear()
    yield
    assert not ran, "input ran its code"


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


@pytest.fixture
def inside(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder inside others; HOME is beside it. Only what is below it may be written to."""
    shutil.rmtree(scratch / "outer", ignore_errors=True)
    monkeypatch.setenv("HOME", str(scratch / "home"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    return scratch


@pytest.fixture(autouse=True)
def _same_folder_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    """`fresh` changes the current folder; this changes it back after the test."""
    monkeypatch.chdir(Path.cwd())


def fresh(scratch: Path) -> Path:
    """Empty the place, make it the current folder and return it."""
    folder = scratch / "outer" / "middle" / "inner"
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    return folder


def called(*arguments: str) -> Result:
    """Call `ctrl`. What it writes to a terminal could be anything; what it returns and raises is checked."""
    done = CliRunner().invoke(ctrl, arguments)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code in {0, 1, 2}, done.output
    if done.exit_code:
        assert done.output
    return done


def nothing_outside(folder: Path) -> None:
    outer = folder.parents[1]
    found = {*outer.iterdir(), *outer.joinpath("middle").iterdir()}
    assert found == {outer / "middle", folder}
    assert not [path for path in folder.rglob("*") if path.name == "PWNED"]


def files_are_whole(folder: Path) -> None:
    """Every file that was written is what its name says, and no code in it is the input's."""
    for path in folder.rglob("*"):
        match path.suffix:
            case ".py":
                tree = ast.parse(path.read_text())
                assert not [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "__import__"]
            case ".toml":
                tomllib.loads(path.read_text())
            case ".yaml" | ".yml" if "templates" not in path.parts:
                list(yaml.load_all(path.read_text(), yaml.CSafeLoader))


# Names


INIT = ("--domain", "--project-name", "--package", "--image", "--owner")
API = ("--group", "--version", "--kind", "--plural", "--image", "--image-container-command")


@pytest.mark.parametrize("option", INIT)
@pytest.mark.parametrize("text", TEXTS, ids=list(map(str, range(len(TEXTS)))))
def test_names_of_a_project(inside: Path, option: str, text: str) -> None:
    folder = fresh(inside)

    done = called("init", "--domain", "x.io", "--project-name", "shop", "--license", "mit", f"{option}={text}")

    nothing_outside(folder)
    files_are_whole(folder)
    if done.exit_code == 0:
        assert called("create", "api", "--group", "g", "--version", "v1", "--kind", "Cart").exit_code == 0
        files_are_whole(folder)


@pytest.mark.parametrize("text", TEXTS, ids=list(map(str, range(len(TEXTS)))))
def test_folders_of_a_project(inside: Path, text: str) -> None:
    folder = fresh(inside)
    (folder / "a" / "b").mkdir(parents=True)
    os.chdir(folder / "a" / "b")

    if (
        not text.startswith(("/", "-")) and "\x00" not in text and "\ud800" not in text
    ):  # no argument can hold the last two
        called("init", "--domain", "x.io", "--", text)

    files_are_whole(folder)


@pytest.mark.parametrize("option", API)
def test_names_of_a_kind(inside: Path, option: str) -> None:
    folder = fresh(inside)
    assert called("init", "--domain", "x.io", "--project-name", "shop").exit_code == 0
    good = {"--group": "g", "--version": "v1", "--kind": "Cart"}
    for text in TEXTS:
        for command in ("api", "webhook"):
            if command == "webhook" and option not in good:
                continue
            more = ["--image=memcached:1"] if option == "--image-container-command" else []
            more += ["--defaulting"] if command == "webhook" else []
            arguments = [f"{key}={value}" for key, value in {**good, option: text}.items()]
            done = called("create", command, *arguments, *more, "--force")
            nothing_outside(folder)
            if done.exit_code == 0:
                files_are_whole(folder)


# Documents


@dataclass(frozen=True)
class Subject:
    """A good document, and what reads it: it gets an empty folder and a hostile document."""

    tree: Any
    read: Callable[[Path, Any], None]


KUSTOMIZATION = {
    "resources": ["a.yaml"],
    "namespace": "shop",
    "namePrefix": "a-",
    "nameSuffix": "-b",
    "commonLabels": {"a": "b"},
    "commonAnnotations": {"c": "d"},
    "labels": [{"pairs": {"e": "f"}, "includeSelectors": True, "includeTemplates": True}],
    "images": [{"name": "shop", "newName": "shop2", "newTag": "2", "digest": ""}],
    "replicas": [{"name": "shop", "count": 2}],
    "patches": [
        {"path": "patch.yaml", "target": {"kind": "Deployment", "name": "s.*p", "labelSelector": "a=b"}},
        {
            "patch": '[{"op": "add", "path": "/spec/x", "value": 1}]',
            "target": {"kind": "Deployment"},
            "options": {"allowNameChange": True},
        },
    ],
    "patchesStrategicMerge": ["patch.yaml"],
    "patchesJson6902": [{"target": {"version": "v1", "kind": "Service", "name": "shop"}, "path": "ops.json"}],
    "replacements": [
        {
            "source": {
                "kind": "Service",
                "name": "shop",
                "fieldPath": "metadata.name",
                "options": {"delimiter": "-", "index": 0},
            },
            "targets": [
                {
                    "select": {"kind": "Deployment"},
                    "reject": [{"name": "none"}],
                    "fieldPaths": ["spec.template.spec.containers.[name=shop].image"],
                    "options": {"delimiter": "/", "index": 0, "create": True},
                }
            ],
        }
    ],
    "configMapGenerator": [
        {
            "name": "c",
            "literals": ["a=b"],
            "files": ["k=patch.yaml"],
            "envs": ["x.env"],
            "behavior": "create",
            "options": {"labels": {"a": "b"}},
        }
    ],
    "secretGenerator": [{"name": "s", "literals": ["a=b"], "type": "Opaque"}],
    "generatorOptions": {"disableNameSuffixHash": True, "labels": {"a": "b"}, "immutable": True},
    "configurations": ["config.yaml"],
    "sortOptions": {"order": "legacy", "legacySortOptions": {"orderFirst": ["Namespace"], "orderLast": ["Service"]}},
}
OBJECTS = [
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "shop", "namespace": "n", "labels": {"a": "b"}, "annotations": {"x": "y"}},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "shop", "image": "shop:1", "env": [{"name": "A", "value": "b"}]}]},
            },
        },
    },
    {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "shop"},
        "spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]},
    },
]
PATCH = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "shop", "namespace": "n"},
    "spec": {"template": {"spec": {"containers": [{"name": "shop", "$patch": "merge"}]}}},
}
OPERATIONS = [
    {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}},
    {"op": "test", "path": "/kind", "value": "Service"},
]
FIELDS = {
    "nameReference": [
        {"kind": "Service", "version": "v1", "fieldSpecs": [{"path": "spec/serviceName", "kind": "Deployment"}]}
    ],
    "commonLabels": [{"path": "metadata/labels", "create": True}],
    "images": [{"path": "spec/image", "kind": "Shop"}],
}
KUSTOMIZE = {
    "kustomization.yaml": KUSTOMIZATION,
    "a.yaml": OBJECTS,
    "patch.yaml": PATCH,
    "ops.json": OPERATIONS,
    "config.yaml": FIELDS,
    "x.env": "A=b\n",
}


def text_of(content: Any) -> str:
    """A document as YAML; what YAML cannot hold (half a surrogate pair) as JSON."""
    if isinstance(content, str):
        return content
    try:
        text = yaml.dump_all(content if isinstance(content, list) else [content], Dumper=yaml.CSafeDumper)
        text.encode()
    except (UnicodeError, yaml.YAMLError):
        return json.dumps(content)
    return text


def write_files(folder: Path, files: Any) -> None:
    for name, content in files.items():
        path = folder / name
        if "\x00" in name or len(name) > 200 or not path.resolve().is_relative_to(folder) or path == folder:
            continue
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            text = json.dumps(content) if name.endswith(".json") else text_of(content)
            path.write_bytes(text.encode(errors="surrogatepass"))
        except (OSError, UnicodeError):
            continue  # no such file can be


def render(folder: Path, files: Any) -> None:
    write_files(folder, files)
    called("render", str(folder), "-o", str(folder / "out") + "/")


READERS = ("scorecard", "catalog", "compare")
"""What else reads a bundle. One of them reads each, as each takes a tenth of a second."""


def bundle(folder: Path, files: Any) -> None:
    write_files(folder / "bundle", files)
    called("bundle", "validate", "bundle", "--select-optional", "suite=operatorframework")
    match READERS[zlib.crc32(repr(files).encode()) % len(READERS)]:
        case "compare":
            write_files(folder / "old", good())
            called("bundle", "compare", "old", "bundle")
        case reader:
            called(reader, "bundle")


def catalog(folder: Path, blobs: Any) -> None:
    try:
        text = dump_all(blobs)
        text.encode()
    except Exception:  # noqa: BLE001 - our writer does not hold everything that a reader can meet
        text = "\n".join(json.dumps(each) for each in blobs) if isinstance(blobs, list) else json.dumps(blobs)
    (folder / "catalog.yaml").write_text(text)
    called("catalog", "validate", "catalog.yaml")


def catalog_blobs(scratch: Path) -> list[Any]:
    write_files(scratch / "bundle", good())
    blobs = catalog_of([read_bundle(scratch / "bundle")])
    return [
        {key: value[:1] if key == "properties" else value for key, value in each.items()}
        | ({"properties": short(each["properties"])} if "properties" in each else {})
        for each in blobs
    ]


def short(properties: list[Any]) -> list[Any]:
    return [each for each in properties if each["type"] != "olm.csv.metadata"]


CERTIFICATE = "LS0tLS1CRUdJTg=="
KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "a",
    "clusters": [
        {
            "name": "a",
            "cluster": {
                "server": "https://localhost:1",
                "insecure-skip-tls-verify": True,
                "tls-server-name": "a",
                "proxy-url": "http://localhost:2",
                "disable-compression": True,
                "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"a": "b"}}],
            },
        }
    ],
    "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a", "namespace": "n"}}],
    "users": [
        {
            "name": "a",
            "user": {
                "exec": {
                    "apiVersion": "client.authentication.k8s.io/v1",
                    "command": "touch",
                    "args": ["PWNED"],
                    "env": [{"name": "A", "value": "b"}],
                    "interactiveMode": "Never",
                    "provideClusterInfo": True,
                    "installHint": "hint",
                },
                "as": "u",
                "as-groups": ["g"],
                "as-uid": "1",
                "as-user-extra": {"a": ["b"]},
            },
        }
    ],
}
KUBECONFIGS = {
    "exec": KUBECONFIG,
    "token": with_value(KUBECONFIG, ("users", 0, "user"), {"token": "t", "tokenFile": "f", "client-certificate-data": CERTIFICATE, "client-key-data": CERTIFICATE}),
    "password": with_value(KUBECONFIG, ("users", 0, "user"), {"username": "u", "password": "p"}),
    "files": with_value(
        with_value(KUBECONFIG, ("clusters", 0, "cluster"), {"server": "https://localhost:1", "certificate-authority": "ca", "certificate-authority-data": CERTIFICATE}),
        ("users", 0, "user"),
        {"client-certificate": "c", "client-key": "k", "auth-provider": {"name": "oidc", "config": {"id-token": "a.b.c", "idp-issuer-url": "https://localhost:3", "client-id": "i", "refresh-token": "r"}}},
    ),
}  # fmt: skip


def kubeconfig(folder: Path, tree: Any) -> None:
    (folder / "config").write_bytes(text_of(tree).encode(errors="surrogatepass"))
    with contextlib.suppress(ConfigError):
        get_config(str(folder / "config"))


TABLE = {
    "project-name": "shop",
    "package": "shop",
    "domain": "x.io",
    "source-dir": ".",
    "image": "shop:1",
    "namespaced": False,
    "multigroup": False,
    "owner": "me",
    "license": "mit",
    "scaffold-version": "0.1.0",
    "features": {"cert-manager": True, "metrics": True, "network-policy": False, "prometheus": False},
    "resources": [
        {
            "group": "g.x.io", "version": "v1", "kind": "Cart", "plural": "carts", "namespaced": True, "external": False, "storage": True,
            "controller": True, "defaulting": True, "validation": True, "spokes": ["v2"], "fleet": False, "image": "memcached:1",
            "image-container-command": ["a"], "image-container-port": 1, "run-as-user": 5,
        }
    ],
}  # fmt: skip


def pyproject(folder: Path, table: Any) -> None:
    try:
        text = tomlkit.dumps({"project": {"name": "shop", "version": "1"}, "tool": {"ctrlruntime": table}})
        (folder / "pyproject.toml").write_text(text)
        tomllib.loads(text)
    except Exception:  # noqa: BLE001 - TOML has no null, and not every text and key
        return
    used(folder)


def project_file(folder: Path, tree: Any) -> None:
    (folder / "PROJECT").write_bytes(text_of(tree).encode(errors="surrogatepass"))
    with contextlib.suppress(ConfigError):
        settings = new_project(folder, domain="x.io", project_name="shop")
        scaffold_files(take_over(folder, read_project_file(folder), settings, warn=lambda _text: None).settings)


COMMANDS = itertools.cycle(
    [
        ("create", "api", "--group", "g", "--version", "v3", "--kind", "Kart"),
        (
            "create",
            "webhook",
            "--group",
            "g",
            "--version",
            "v1",
            "--kind",
            "Cart",
            "--conversion",
            "--spoke",
            "v2",
            "--force",
        ),
        ("edit", "--multigroup"),
        ("upgrade", "--dry-run"),
        ("image", "--print"),
        ("helm",),
        ("doctor", "--local"),
    ]
)


def used(folder: Path) -> None:
    """Call a command that goes by the settings; the next one in the table, as each takes a tenth of a second."""
    (folder / "shop").mkdir(exist_ok=True)
    (folder / "shop" / "__init__.py").touch()
    with contextlib.suppress(ConfigError):
        read_settings(folder)
    called(*next(COMMANDS))
    files_are_whole(folder)


PROJECT = {
    "version": "3",
    "projectName": "shop",
    "domain": "x.io",
    "multigroup": True,
    "namespaced": False,
    "layout": ["go.kubebuilder.io/v4"],
    "repo": "x",
    "resources": [
        {
            "group": "g", "domain": "x.io", "version": "v1", "kind": "Cart", "plural": "carts", "core": False, "external": False, "path": "p",
            "controller": True, "controllers": [{"name": "a"}],
            "api": {"crdVersion": "v1", "namespaced": True}, "webhooks": {"defaulting": True, "validation": True, "spoke": ["v2"], "webhookVersion": "v1"},
        }
    ],
}  # fmt: skip

SUBJECTS = {
    "kustomize": Subject(KUSTOMIZE, render),
    "bundle": Subject(dict(good()), bundle),
    "pyproject": Subject(TABLE, pyproject),
    "PROJECT": Subject(PROJECT, project_file),
    **{f"kubeconfig-{name}": Subject(tree, kubeconfig) for name, tree in KUBECONFIGS.items()},
}
ELSEWHERE = {
    ("clusters", 0, "cluster", "server"),
    ("clusters", 0, "cluster", "certificate-authority-data"),
    ("users", 0, "user", "as-user-extra"),
    ("users", 0, "user", "as-user-extra", "a"),
    ("users", 0, "user", "as-user-extra", "a", 0),
}
"""Places of a kubeconfig where a wrong value still ends in an error of Python's: rest.config and rest.tls read them unchecked."""
DEAR = {"kustomize", "bundle", "pyproject"}
"""What takes a tenth of a second a document and more: without `--all` each place meets one of the values, in turn."""


def cases(thorough: bool) -> Iterator[Any]:
    common = set(places(KUBECONFIG))
    for name, subject in SUBJECTS.items():
        turns = itertools.cycle(EVIL)
        for place in places(subject.tree):
            if name.startswith("kubeconfig") and place in ELSEWHERE:
                continue
            if subject.read is kubeconfig and subject.tree is not KUBECONFIG and place in common and not thorough:
                continue  # the first kubeconfig has that place, too
            if name == "bundle" and len(place) > 4 and not thorough:
                continue
            evil = EVIL if thorough or name not in DEAR else [next(turns)]
            yield pytest.param(name, place, evil, id=f"{name}-{'.'.join(map(str, place))}")


def check(scratch: Path, read: Callable[[Path, Any], None], tree: Any) -> None:
    folder = fresh(scratch)
    read(folder, tree)
    nothing_outside(folder)


@pytest.mark.parametrize(("name", "place", "evil"), list(cases(thorough=False)))
def test_hostile_values_at_each_place(inside: Path, name: str, place: tuple[Any, ...], evil: list[Any]) -> None:
    subject = SUBJECTS[name]
    for value in evil:
        check(inside, subject.read, with_value(subject.tree, place, value))


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "place", "evil"), list(cases(thorough=True)))
def test_all_hostile_values_at_each_place(inside: Path, name: str, place: tuple[Any, ...], evil: list[Any]) -> None:
    test_hostile_values_at_each_place(inside, name, place, evil)


@pytest.mark.parametrize("name", SUBJECTS)
def test_random_documents_of_a_wrong_shape(inside: Path, name: str) -> None:
    subject = SUBJECTS[name]

    @settings(max_examples=15 if name in DEAR else 60)
    @given(hostile(subject.tree))
    def run(tree: Any) -> None:
        check(inside, subject.read, tree)

    run()


@pytest.mark.thorough
@pytest.mark.parametrize("name", SUBJECTS)
def test_many_random_documents_of_a_wrong_shape(inside: Path, name: str) -> None:
    subject = SUBJECTS[name]

    @settings(max_examples=2_000 if name in DEAR else 20_000)
    @given(hostile(subject.tree))
    def run(tree: Any) -> None:
        check(inside, subject.read, tree)

    run()


def test_catalogs(inside: Path) -> None:
    blobs = catalog_blobs(fresh(inside))
    for place, value in zip(places(blobs), itertools.cycle(EVIL), strict=False):
        check(inside, catalog, with_value(blobs, place, value))


@pytest.mark.thorough
@pytest.mark.parametrize("value", EVIL, ids=list(map(str, range(len(EVIL)))))
def test_catalogs_with_every_value(inside: Path, value: Any) -> None:
    blobs = catalog_blobs(fresh(inside))
    for place in places(blobs):
        check(inside, catalog, with_value(blobs, place, value))


def test_random_catalogs(inside: Path) -> None:
    blobs = catalog_blobs(fresh(inside))

    @settings(max_examples=200)
    @given(hostile(blobs))
    def run(tree: Any) -> None:
        check(inside, catalog, tree)

    run()


@pytest.mark.parametrize(
    "tag",
    [
        "!!python/object/apply:builtins.hostile []",
        "!!python/name:builtins.hostile ''",
        "!!binary x",
        "!x y",
        "&a [*a]",
        "*a",
    ],
)
@pytest.mark.parametrize("name", ["kustomize", "bundle", "PROJECT", "kubeconfig-exec"])
def test_tags_of_yaml(inside: Path, name: str, tag: str) -> None:
    subject = SUBJECTS[name]
    files = {"kustomize": "a.yaml", "bundle": CSV}

    tree = {**subject.tree, files[name]: f"a: {tag}\n"} if name in files else f"version: '3'\nkind: {tag}\n"

    check(inside, subject.read, tree)


def test_the_good_documents_are_good(inside: Path) -> None:
    folder = fresh(inside)
    write_files(folder, KUSTOMIZE)
    assert called("render", str(folder)).output.startswith("apiVersion")
    folder = fresh(inside)
    write_files(folder / "bundle", good())
    assert called("bundle", "validate", "bundle").exit_code == 0
    (folder / "catalog.yaml").write_text(dump_all(catalog_blobs(folder)))
    assert called("catalog", "validate", "catalog.yaml").exit_code == 0
    (folder / "config").write_text(dump(KUBECONFIG))
    assert get_config(str(folder / "config"))
    (folder / "PROJECT").write_text(dump(PROJECT))
    assert read_project_file(folder).resources
