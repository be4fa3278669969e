"""The folder a bundle is made in: a new one, an empty one, or a bundle; nothing else is filled."""

from __future__ import annotations

from pathlib import Path

import pytest
from bundles import write as write_bundle

from ctrlruntime.errors import ConfigError
from ctrlruntime.olm.bundle import read_bundle
from ctrlruntime.olm.making.folder import refuse_foreign


def refuse(folder: Path) -> None:
    refuse_foreign(folder, read_bundle(folder) if folder.is_dir() else None)


def with_files(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    return folder


def test_a_new_one_and_an_empty_one_are_taken(tmp_path):
    refuse(tmp_path / "bundle")
    refuse(tmp_path)


@pytest.mark.parametrize(
    "name", ["tests/scorecard/config.yaml", "metadata/dependencies.yaml", "manifests/a.yaml", ".gitkeep"]
)
def test_the_beginning_of_a_bundle_is_taken(tmp_path, name):
    refuse(with_files(tmp_path, name))


def test_a_bundle_with_other_files_beside_it_is_taken(tmp_path):
    write_bundle(tmp_path)
    with_files(tmp_path, "README.md")

    refuse(tmp_path)


FOREIGN = {
    "a package": (["__init__.py", "main.py"], "__init__.py"),
    "a project's tree": (["manifests/kustomization.yaml", "crd/kustomization.yaml"], "crd"),
    "a part of one": (["manifests/kustomization.yaml", "manifests/bases/a.yaml"], "manifests/kustomization.yaml"),
}


@pytest.mark.parametrize(("names", "told"), FOREIGN.values(), ids=list(FOREIGN))
def test_what_is_no_bundle_is_refused(tmp_path, names, told):
    with pytest.raises(ConfigError) as caught:
        refuse(with_files(tmp_path, *names))

    assert str(caught.value).startswith(
        f"cannot write the bundle to {tmp_path}: it is not a bundle, and contains {told}. Use an empty"
    )


def test_a_name_that_breaks_the_line_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="the name is not valid in a Dockerfile"):
        refuse(tmp_path / "a\nb")
