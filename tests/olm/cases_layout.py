"""Cases of folders, files, annotations and dependencies."""

from __future__ import annotations

from bundles import (
    ANNOTATIONS,
    CONFIG_MAP,
    CRD,
    CSV,
    DEPENDENCIES,
    ROLE,
    SCORECARD,
    SERVICE,
    Files,
    add,
    annotation,
    dependency,
    error,
    put,
    remove,
    several,
    warning,
)

PACKAGE = {"packageName": "stove", "versionRange": ">=1.0.0"}
GVK = {"group": "water.example.com", "version": "v1", "kind": "Tap"}


def _constraint(value: object):
    return dependency("olm.constraint", value)


def _two_documents(files: Files) -> None:
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kettle-cups"}}
    files[CONFIG_MAP] = [files[CONFIG_MAP], other]


def _only_metadata(files: Files) -> None:
    for name in (CSV, CRD, SERVICE, ROLE, CONFIG_MAP):
        del files[name]


LAYOUT = (
    error("manifests-missing", _only_metadata),
    error("metadata-missing", several(remove(ANNOTATIONS), remove(DEPENDENCIES))),
    error("manifests-subfolder", add("manifests/more/", "")),
    error("manifests-hidden-file", add("manifests/.keep", "")),
    error("manifests-foreign-file", add("manifests/README.md", "# Kettle\n")),
    error("manifest-unreadable", add("manifests/broken.yaml", "a: [1\n"), "no-yaml"),
    error("manifest-unreadable", add("manifests/list.yaml", "- a\n- b\n"), "no-object"),
    error("manifest-unreadable", add(CSV, "spec: {\n"), "the-csv"),
    error("metadata-unreadable", add("metadata/properties.yaml", "a: [1\n"), "metadata"),
    error("metadata-unreadable", add(SCORECARD, "kind: [\n"), "scorecard"),
    error("metadata-unreadable", add(ANNOTATIONS, "annotations: {\n"), "annotations"),
    error("metadata-unreadable", add(DEPENDENCIES, "dependencies: [\n"), "dependencies"),
    error("manifest-several-documents", _two_documents),
)

METADATA = (
    error("annotations-missing", remove(ANNOTATIONS), "no-file"),
    error("annotations-missing", add(ANNOTATIONS, {"annotation": {}}), "no-word"),
    *(
        error("annotation-missing", annotation(name), name)
        for name in ("mediatype.v1", "manifests.v1", "metadata.v1", "package.v1", "channels.v1")
    ),
    error("annotation-no-text", annotation("channel.default.v1", 1.0)),
    error("annotation-media-type", annotation("mediatype.v1", "helm+v0")),
    error("annotation-folder", annotation("manifests.v1", "objects/"), "manifests"),
    error("annotation-folder", annotation("metadata.v1", "meta/"), "metadata"),
    error("package-empty", annotation("package.v1", "")),
    error("channels-empty", several(annotation("channels.v1", ""), annotation("channel.default.v1"))),
    error("channels-empty", several(annotation("channels.v1", " , "), annotation("channel.default.v1")), "commas"),
    error("default-channel-empty", annotation("channel.default.v1", "")),
    warning("default-channel-unknown", annotation("channel.default.v1", "fast")),
)

DEPENDENCY = (
    error("dependencies-no-list", add(DEPENDENCIES, {"dependencies": {"type": "olm.gvk", "value": GVK}})),
    error("dependency-type", dependency("olm.crd", GVK), "unknown"),
    error("dependency-type", dependency("olm.maxOpenShiftVersion", "4.20"), "property"),
    error("dependency-type", put(DEPENDENCIES, "dependencies.0", "stove"), "text"),
    error("dependency-package", dependency("olm.package", {"version": "1.0.0"}), "name"),
    error("dependency-package", dependency("olm.package", {"packageName": "stove"}), "no-version"),
    error("dependency-package", dependency("olm.package", {"packageName": "stove", "version": "^1.0"}), "version"),
    error("dependency-gvk", dependency("olm.gvk", {"group": "a.example.com", "kind": "A"})),
    error("dependency-label", dependency("olm.label", {"label": ""})),
    error("dependency-constraint", _constraint({"failureMessage": "no"}), "none"),
    error("dependency-constraint", _constraint({"package": PACKAGE, "gvk": GVK}), "two"),
    error("dependency-constraint", _constraint({"package": PACKAGE, "labels": []}), "unknown"),
    error("dependency-constraint", _constraint({"package": {**PACKAGE, "versionRange": "1"}}), "range"),
    error("dependency-constraint", _constraint({"gvk": {"group": "a.example.com"}}), "gvk"),
    error("dependency-constraint", _constraint({"cel": {"rule": ""}}), "no-rule"),
    error("dependency-constraint", _constraint({"cel": {"rule": "properties.exists(p,"}}), "rule"),
    error("dependency-constraint", _constraint({"all": {"constraints": []}}), "empty"),
    error("dependency-constraint", _constraint({"all": {"constraints": [{"not": {"constraints": [{}]}}]}}), "nested"),
    error("dependency-constraint", _constraint({"failureMessage": "a" * 140_000, "gvk": GVK}), "large"),
)

CASES = LAYOUT + METADATA + DEPENDENCY
