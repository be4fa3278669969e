"""Logins of registries, from the files of docker and podman."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from ctrlruntime.errors import ConfigError
from ctrlruntime.olm.making.logins import Logins
from ctrlruntime.olm.reference import Reference


def auth(text: str) -> dict:
    return {"auth": base64.b64encode(text.encode()).decode()}


def written(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def login_of(image: str, environ: dict[str, str]) -> str | None:
    """Name and password."""
    login = Logins(environ).of(Reference.of(image))
    return None if login is None else base64.b64decode(login.basic).decode()


@pytest.mark.parametrize(
    ("key", "image"),
    [
        ("quay.io", "quay.io/me/shop"),
        ("https://quay.io", "quay.io/me/shop"),
        ("https://quay.io/v2/", "quay.io/me/shop"),
        ("quay.io/me", "quay.io/me/shop"),
        ("quay.io/me/shop", "quay.io/me/shop:v1"),
        ("localhost:5000", "localhost:5000/shop"),
        ("https://index.docker.io/v1/", "memcached"),
        ("docker.io", "memcached"),
        ("registry-1.docker.io", "docker.io/me/shop"),
    ],
)
def test_a_login_is_found_by_the_names_docker_and_podman_give_it(tmp_path, key, image):
    written(tmp_path / ".docker/config.json", {"auths": {key: auth("ann:secret")}})

    assert login_of(image, {"HOME": str(tmp_path)}) == "ann:secret"


def test_a_login_of_another_place_is_none(tmp_path):
    written(tmp_path / ".docker/config.json", {"auths": {"quay.io/you": auth("ann:secret"), "x.io": {}}})

    assert [login_of(image, {"HOME": str(tmp_path)}) for image in ("quay.io/me/shop", "x.io/shop", "shop")] == [
        None
    ] * 3


def test_the_nearest_login_goes_first_and_podmans_file_before_dockers(tmp_path):
    docker = {"auths": {"quay.io": auth("docker:1"), "x.io": auth("docker:1")}}
    podman = {"auths": {"quay.io": auth("podman:1"), "quay.io/me": auth("near:1")}}
    written(tmp_path / "docker/config.json", docker)
    written(tmp_path / "run/containers/auth.json", podman)
    environ = {"DOCKER_CONFIG": str(tmp_path / "docker"), "XDG_RUNTIME_DIR": str(tmp_path / "run")}
    named = written(tmp_path / "mine.json", {"auths": {"quay.io": auth("named:1")}})

    images = ("quay.io/me/shop", "quay.io/other", "x.io/shop")

    assert [login_of(image, environ) for image in images] == ["near:1", "podman:1", "docker:1"]
    assert [login_of(image, {**environ, "REGISTRY_AUTH_FILE": str(named)}) for image in images] == [
        "named:1", "named:1", "docker:1",
    ]  # fmt: skip


def test_without_files_there_is_no_login_and_their_places_are_known(tmp_path):
    logins = Logins({"HOME": str(tmp_path)})

    assert logins.of(Reference.of("shop")) is None
    assert logins.places == (tmp_path / ".docker/config.json",)


def test_programs_that_keep_logins_are_known_by_name(tmp_path):
    path = written(tmp_path / "config.json", {"credsStore": "desktop", "credHelpers": {"gcr.io": "gcloud"}})
    logins = Logins({"REGISTRY_AUTH_FILE": str(path), "HOME": str(tmp_path)})

    found = [logins.helper_of(Reference.of(image)) for image in ("gcr.io/shop", "quay.io/shop")]

    assert found == ["docker-credential-gcloud", "docker-credential-desktop"]
    assert Logins({"HOME": str(tmp_path)}).helper_of(Reference.of("shop")) == ""


def test_a_login_does_not_show_its_secrets(tmp_path):
    entry = {**auth("ann:secret"), "identitytoken": "refresh", "registrytoken": "access"}
    written(tmp_path / ".docker/config.json", {"auths": {"quay.io": entry}})

    login = Logins({"HOME": str(tmp_path)}).of(Reference.of("quay.io/shop"))

    assert login is not None
    assert (login.refresh_token, login.access_token) == ("refresh", "access")
    assert not any(secret in repr(login) for secret in (entry["auth"], "refresh", "access'"))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "cannot read registry logins from .*config.json: it is not JSON: "),
        ({"auths": {"quay.io": {"auth": "ann:secret"}}}, "auth of quay.io is not NAME:PASSWORD in base64. Log in to quay.io again"),
        ({"auths": {"quay.io": {"auth": "YW5u"}}}, "auth of quay.io is not NAME:PASSWORD in base64"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_used_is_refused_in_one_line(tmp_path, content, said):
    written(tmp_path / ".docker/config.json", content)

    with pytest.raises(ConfigError, match=said) as caught:
        login_of("quay.io/shop", {"HOME": str(tmp_path)})

    assert "\n" not in str(caught.value)


def test_a_file_that_is_a_folder_is_refused(tmp_path):
    (tmp_path / ".docker/config.json").mkdir(parents=True)

    with pytest.raises(ConfigError, match=r"cannot read .*: Is a directory"):
        Logins({"HOME": str(tmp_path)})


@pytest.mark.parametrize(
    "content", [[], {"auths": []}, {"auths": {"quay.io": "x"}}, {"credHelpers": 1, "credsStore": 1}]
)
def test_a_file_without_logins_holds_none(tmp_path, content):
    written(tmp_path / ".docker/config.json", content)

    assert login_of("quay.io/shop", {"HOME": str(tmp_path)}) is None
