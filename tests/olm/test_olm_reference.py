"""References to images, taken apart."""

from __future__ import annotations

import pytest

from ctrlruntime.errors import ConfigError
from ctrlruntime.olm.reference import Reference

DIGEST = "sha256:" + "ab" * 32


@pytest.mark.parametrize(
    ("image", "registry", "path", "tag", "digest", "name"),
    [
        ("memcached", "docker.io", "library/memcached", "latest", "", "memcached"),
        ("memcached:1.6", "docker.io", "library/memcached", "1.6", "", "memcached"),
        ("me/shop:v1", "docker.io", "me/shop", "v1", "", "me/shop"),
        ("docker.io/memcached:1.6", "docker.io", "library/memcached", "1.6", "", "docker.io/memcached"),
        ("index.docker.io/me/shop", "docker.io", "me/shop", "latest", "", "index.docker.io/me/shop"),
        ("quay.io/me/shop:v1", "quay.io", "me/shop", "v1", "", "quay.io/me/shop"),
        ("quay.io/shop", "quay.io", "shop", "latest", "", "quay.io/shop"),
        ("x.io:5000/shop", "x.io:5000", "shop", "latest", "", "x.io:5000/shop"),
        ("x.io:5000/a/b__c/d-e:V1_0.rc-1", "x.io:5000", "a/b__c/d-e", "V1_0.rc-1", "", "x.io:5000/a/b__c/d-e"),
        ("localhost/shop:v1", "localhost", "shop", "v1", "", "localhost/shop"),
        ("registry:5000/shop", "registry:5000", "shop", "latest", "", "registry:5000/shop"),
        ("[::1]:5000/shop:v1", "[::1]:5000", "shop", "v1", "", "[::1]:5000/shop"),
        (f"quay.io/shop@{DIGEST}", "quay.io", "shop", "", DIGEST, "quay.io/shop"),
        (f"x.io:5000/shop:v1@{DIGEST}", "x.io:5000", "shop", "v1", DIGEST, "x.io:5000/shop"),
    ],
)
def test_a_reference_is_taken_apart(image, registry, path, tag, digest, name):
    found = Reference.of(image)

    assert (found.registry, found.path, found.tag, found.digest) == (registry, path, tag, digest)
    assert (found.text, found.name, found.pinned_to(DIGEST)) == (image, name, f"{name}@{DIGEST}")


def test_references_to_one_image_are_equal_however_they_are_written():
    assert len({Reference.of(image) for image in ("db", "db:latest", "docker.io/db", "library/db:latest")}) == 1
    assert Reference.of("db:16") != Reference.of("db:17")


@pytest.mark.parametrize(
    "image",
    [
        "", " ", "shop:", ":v1", "/shop", "quay.io/", "quay.io/Shop", "quay.io/shop:v1:v2", "quay.io//shop", "shop@sha256:ab",
        "https://quay.io/shop", "quay..io/shop", "a b", "$(IMAGE)", "shop:v1\n", "quay.io:port/shop", "shop:" + "a" * 129,
    ],
)  # fmt: skip
def test_what_is_no_reference_is_refused_in_one_line(image):
    with pytest.raises(ConfigError, match=r"is not a reference to an image. Write") as caught:
        Reference.of(image)

    assert "\n" not in str(caught.value)
