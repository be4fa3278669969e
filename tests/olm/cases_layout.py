"""Cases of folders, files, annotations and dependencies."""

from __future__ import annotations

from bundles import (
    ANNOTATIONS,
    CONFIG_MAP,
    CRD,
    CSV,
    DEPENDENCIES,
    PREFIX,
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
    error("manifests-missing", _only_metadata, file=""),
    error("metadata-missing", several(remove(ANNOTATIONS), remove(DEPENDENCIES)), file=""),
    error("manifests-subfolder", add("manifests/more/", ""), file="manifests/more"),
    error("manifests-hidden-file", add("manifests/.keep", ""), file="manifests/.keep"),
    error("manifests-foreign-file", add("manifests/README.md", "# Kettle\n"), file="manifests/README.md"),
    error("manifest-unreadable", add("manifests/broken.yaml", "a: [1\n"), "no-yaml", file="manifests/broken.yaml"),
    error("manifest-unreadable", add("manifests/list.yaml", "- a\n- b\n"), "no-object", file="manifests/list.yaml"),
    error("manifest-unreadable", add(CSV, "spec: {\n"), "the-csv", object=""),
    error(
        "metadata-unreadable", add("metadata/properties.yaml", "a: [1\n"), "metadata", file="metadata/properties.yaml"
    ),
    error("metadata-unreadable", add(SCORECARD, "kind: [\n"), "scorecard", file=SCORECARD),
    error("metadata-unreadable", add(ANNOTATIONS, "annotations: {\n"), "annotations", file=ANNOTATIONS),
    error("metadata-unreadable", add(DEPENDENCIES, "dependencies: [\n"), "dependencies", file=DEPENDENCIES),
    error("manifest-several-documents", _two_documents, file=CONFIG_MAP),
)

METADATA = (
    error("annotations-missing", remove(ANNOTATIONS), "no-file", file="metadata"),
    error("annotations-missing", add(ANNOTATIONS, {"annotation": {}}), "no-word", file="metadata"),
    *(
        error("annotation-missing", annotation(name), name, path=f"annotations.{PREFIX}.{name}", file=ANNOTATIONS)
        for name in ("mediatype.v1", "manifests.v1", "metadata.v1", "package.v1", "channels.v1")
    ),
    error(
        "annotation-no-text",
        annotation("channel.default.v1", 1.0),
        path=f"annotations.{PREFIX}.channel.default.v1",
        file=ANNOTATIONS,
    ),
    error(
        "annotation-media-type",
        annotation("mediatype.v1", "helm+v0"),
        path=f"annotations.{PREFIX}.mediatype.v1",
        file=ANNOTATIONS,
    ),
    error(
        "annotation-folder",
        annotation("manifests.v1", "objects/"),
        "manifests",
        path=f"annotations.{PREFIX}.manifests.v1",
        file=ANNOTATIONS,
    ),
    error(
        "annotation-folder",
        annotation("metadata.v1", "meta/"),
        "metadata",
        path=f"annotations.{PREFIX}.metadata.v1",
        file=ANNOTATIONS,
    ),
    error(
        "package-empty",
        annotation("package.v1", ""),
        path=f"annotations.{PREFIX}.package.v1",
        file=ANNOTATIONS,
    ),
    error(
        "channels-empty",
        several(annotation("channels.v1", ""), annotation("channel.default.v1")),
        path=f"annotations.{PREFIX}.channels.v1",
        file=ANNOTATIONS,
    ),
    error(
        "channels-empty",
        several(annotation("channels.v1", " , "), annotation("channel.default.v1")),
        "commas",
        path=f"annotations.{PREFIX}.channels.v1",
        file=ANNOTATIONS,
    ),
    error(
        "default-channel-empty",
        annotation("channel.default.v1", ""),
        path=f"annotations.{PREFIX}.channel.default.v1",
        file=ANNOTATIONS,
    ),
    warning(
        "default-channel-unknown",
        annotation("channel.default.v1", "fast"),
        path=f"annotations.{PREFIX}.channel.default.v1",
        file=ANNOTATIONS,
    ),
)

DEPENDENCY = (
    error(
        "dependencies-no-list",
        add(DEPENDENCIES, {"dependencies": {"type": "olm.gvk", "value": GVK}}),
        file=DEPENDENCIES,
    ),
    error("dependency-type", dependency("olm.crd", GVK), "unknown", path="dependencies[2].type", file=DEPENDENCIES),
    error(
        "dependency-type",
        dependency("olm.maxOpenShiftVersion", "4.20"),
        "property",
        path="dependencies[2].type",
        file=DEPENDENCIES,
    ),
    error(
        "dependency-type",
        put(DEPENDENCIES, "dependencies.0", "stove"),
        "text",
        path="dependencies[0].type",
        file=DEPENDENCIES,
    ),
    error(
        "dependency-package",
        dependency("olm.package", {"version": "1.0.0"}),
        "name",
        path="dependencies[2].value.packageName",
        file=DEPENDENCIES,
    ),
    error(
        "dependency-package",
        dependency("olm.package", {"packageName": "stove"}),
        "no-version",
        path="dependencies[2].value.version",
        file=DEPENDENCIES,
    ),
    error(
        "dependency-package",
        dependency("olm.package", {"packageName": "stove", "version": "^1.0"}),
        "version",
        path="dependencies[2].value.version",
        file=DEPENDENCIES,
    ),
    error(
        "dependency-gvk",
        dependency("olm.gvk", {"group": "a.example.com", "kind": "A"}),
        path="dependencies[2].value.version",
        file=DEPENDENCIES,
    ),
    error(
        "dependency-label",
        dependency("olm.label", {"label": ""}),
        path="dependencies[2].value.label",
        file=DEPENDENCIES,
    ),
    error(
        "dependency-constraint",
        _constraint({"failureMessage": "no"}),
        "none",
        path="dependencies[2].value",
        file=DEPENDENCIES,
    ),
    error(
        "dependency-constraint",
        _constraint({"package": PACKAGE, "gvk": GVK}),
        "two",
        path="dependencies[2].value",
        file=DEPENDENCIES,
    ),
    error(
        "dependency-constraint",
        _constraint({"package": PACKAGE, "labels": []}),
        "unknown",
        path="dependencies[2].value.labels",
        file=DEPENDENCIES,
    ),
    error(
        "dependency-constraint",
        _constraint({"package": {**PACKAGE, "versionRange": "1"}}),
        "range",
        path="dependencies[2].value.package.versionRange",
        file=DEPENDENCIES,
    ),
    error(
        "dependency-constraint",
        _constraint({"gvk": {"group": "a.example.com"}}),
        "gvk",
        path=("dependencies[2].value.gvk.version", "dependencies[2].value.gvk.kind"),
        file=DEPENDENCIES,
    ),
    error(
        "dependency-constraint",
        _constraint({"cel": {"rule": ""}}),
        "no-rule",
        path="dependencies[2].value.cel.rule",
        file=DEPENDENCIES,
    ),
    error(
        "dependency-constraint",
        _constraint({"cel": {"rule": "properties.exists(p,"}}),
        "rule",
        path="dependencies[2].value.cel.rule",
        file=DEPENDENCIES,
    ),
    error(
        "dependency-constraint",
        _constraint({"all": {"constraints": []}}),
        "empty",
        path="dependencies[2].value.all.constraints",
        file=DEPENDENCIES,
    ),
    error(
        "dependency-constraint",
        _constraint({"all": {"constraints": [{"not": {"constraints": [{}]}}]}}),
        "nested",
        path="dependencies[2].value.all.constraints[0].not.constraints[0]",
        file=DEPENDENCIES,
    ),
    error(
        "dependency-constraint",
        _constraint({"failureMessage": "a" * 140_000, "gvk": GVK}),
        "large",
        path="dependencies[2].value",
        file=DEPENDENCIES,
    ),
    error(
        "dependency-constraint",
        _constraint({"failureMessage": "ü" * 70_000, "gvk": GVK}),
        "large-in-bytes",
        path="dependencies[2].value",
        file=DEPENDENCIES,
    ),
)

CASES = LAYOUT + METADATA + DEPENDENCY
