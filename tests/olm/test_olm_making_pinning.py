"""Images by their digests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctrlruntime.errors import ConfigError, GenerateError
from ctrlruntime.olm.making import read_digests
from ctrlruntime.olm.making.pinning import pinned

DIGEST = "sha256:" + "ab" * 32
OTHER = "sha256:" + "cd" * 32


def with_images() -> dict:
    pod = {
        "initContainers": [{"name": "first", "image": "x.io:5000/first"}],
        "containers": [
            {
                "name": "manager",
                "image": "x.io/shop:v1",
                "env": [
                    {"name": "RELATED_IMAGE_DB", "value": "x.io/db:16"},
                    {"name": "IMAGE", "value": "x.io/other:1"},
                    {"name": "RELATED_IMAGE_NONE", "value": ""},
                ],
            },
            {"name": "done", "image": f"x.io/done@{OTHER}"},
        ],
    }
    return {
        "metadata": {"name": "shop.v1.0.0", "annotations": {"containerImage": "x.io/shop:v1"}},
        "spec": {
            "install": {"spec": {"deployments": [{"name": "shop", "spec": {"template": {"spec": pod}}}]}},
            "relatedImages": [{"name": "db", "image": "x.io/db:16"}],
        },
    }


def digests_in(tmp_path: Path, content: object) -> dict[str, str]:
    path = tmp_path / "digests.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return read_digests(path)


def test_every_image_is_pinned_to_its_digest(tmp_path):
    digests = digests_in(
        tmp_path,
        {"x.io/shop:v1": DIGEST, "x.io/db:16": f"mirror.io/db@{OTHER}", "x.io:5000/first:latest": DIGEST, "unused": OTHER},
    )  # fmt: skip
    before = with_images()

    csv = pinned(before, digests)

    pod = csv["spec"]["install"]["spec"]["deployments"][0]["spec"]["template"]["spec"]
    assert pod["initContainers"][0]["image"] == f"x.io:5000/first@{DIGEST}"
    assert [each["image"] for each in pod["containers"]] == [f"x.io/shop@{DIGEST}", f"x.io/done@{OTHER}"]
    assert [each["value"] for each in pod["containers"][0]["env"]] == [f"mirror.io/db@{OTHER}", "x.io/other:1", ""]
    assert csv["spec"]["relatedImages"] == [
        {"name": "db", "image": f"mirror.io/db@{OTHER}"},
        {"name": "first", "image": f"x.io:5000/first@{DIGEST}"},
        {"name": "manager", "image": f"x.io/shop@{DIGEST}"},
        {"name": "done", "image": f"x.io/done@{OTHER}"},
    ]
    assert csv["metadata"]["annotations"]["containerImage"] == f"x.io/shop@{DIGEST}"
    assert before == with_images()


def test_images_without_a_digest_are_all_named_at_once(tmp_path):
    with pytest.raises(GenerateError) as caught:
        pinned(with_images(), digests_in(tmp_path, {"x.io/db:16": DIGEST}), where="digests.json")

    assert str(caught.value).startswith("digests.json has no digest for x.io:5000/first, x.io/shop:v1. Add each")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "is not JSON"),
        ([], "must be a map"),
        ({"x.io/db:16": "16"}, "x.io/db:16 must have a digest, sha256: and 64 hexadecimal digits"),
        ({"x.io/db:16": f"@{DIGEST}"}, "x.io/db:16 must have a digest"),
        ({"x.io/db:16": None}, "x.io/db:16 must have a digest"),
    ],
)
def test_a_file_that_holds_no_digests_is_refused(tmp_path, content, said):
    with pytest.raises(ConfigError, match=said):
        digests_in(tmp_path, content)


def test_a_file_of_digests_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="cannot read"):
        read_digests(tmp_path / "none.json")
