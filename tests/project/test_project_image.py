"""The commands that build an image, by tool, and running them."""

from __future__ import annotations

import pytest

from ctrlruntime.errors import ConfigError
from ctrlruntime.project.image import TOOLS, Build, commands, find_tool, run

ARM, AMD = "linux/arm64", "linux/amd64"


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Dockerfile").write_text("FROM scratch\n")
    return tmp_path


def lines(project, tool, **options):
    return [" ".join(command) for command in commands(Build(image="me/shop:v1", folder=project, **options), tool)]


@pytest.mark.parametrize("tool", TOOLS)
def test_a_build_for_this_machine(project, tool):
    assert lines(project, tool) == [f"{tool} build --tag me/shop:v1 ."]
    assert lines(project, tool, push=True) == [f"{tool} build --tag me/shop:v1 .", f"{tool} push me/shop:v1"]


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        ("docker", ["docker buildx build --platform linux/arm64 --tag me/shop:v1 --load ."]),
        ("podman", ["podman build --platform linux/arm64 --tag me/shop:v1 ."]),
    ],
)
def test_a_build_for_another_platform(project, tool, expected):
    assert lines(project, tool, platforms=(ARM,)) == expected


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        ("docker", ["docker buildx build --platform {} --tag me/shop:v1 --push ."]),
        ("nerdctl", ["nerdctl build --platform {} --tag me/shop:v1 .", "nerdctl push --all-platforms me/shop:v1"]),
        *(
            (
                tool,
                [
                    tool + " build --platform {} --manifest me/shop:v1 .",
                    tool + " manifest push --all me/shop:v1 docker://me/shop:v1",
                ],
            )
            for tool in ("podman", "buildah")
        ),
    ],
)
def test_a_build_for_several_platforms_is_pushed_as_a_list(project, tool, expected):
    found = lines(project, tool, platforms=(AMD, ARM), push=True)

    assert found == [line.format(f"{AMD},{ARM}") for line in expected]


def test_the_folder_is_told_from_where_the_command_runs(project, monkeypatch):
    (project / "shop").mkdir()
    monkeypatch.chdir(project / "shop")

    assert lines(project, "docker") == ["docker build --tag me/shop:v1 .."]


def test_several_platforms_without_a_push_are_refused(project):
    with pytest.raises(ConfigError, match="Add --push"):
        Build(image="shop", folder=project, platforms=(AMD, ARM))


@pytest.mark.parametrize("platform", ["arm64", "linux/", "Linux/arm64", "linux/arm64/8", "linux/arm64 --x"])
def test_a_platform_there_is_none_of_is_refused(project, platform):
    with pytest.raises(ConfigError, match=r"the platform .* is not valid\. Use OS/ARCH"):
        Build(image="shop", folder=project, platforms=(platform,))


@pytest.mark.parametrize(
    "image",
    ["shop", "shop:v1", "me/shop", "ghcr.io/me/shop:v1.2-rc", "localhost:5000/shop", "Host.example:5000/a/b_c:X"],
)
def test_names_of_images(project, image):
    assert Build(image=image, folder=project).image == image


@pytest.mark.parametrize(
    "image", ["", "Shop", "shop:", "shop:v 1", "-shop", "ghcr.io/Me/shop", "shop@sha256:00", "--push"]
)
def test_a_name_of_no_image_is_refused(project, image):
    with pytest.raises(ConfigError, match=r"is not valid\. Use \[REGISTRY/\]NAME\[:TAG\] in lower case"):
        Build(image=image, folder=project)


def test_the_first_tool_on_the_path_is_taken():
    assert find_tool({"podman": "/usr/bin/podman", "buildah": "/usr/bin/buildah"}.get) == "podman"
    assert find_tool({}.get) is None


def test_without_a_dockerfile_nothing_is_run(tmp_path):
    with pytest.raises(ConfigError, match="Dockerfile does not exist"):
        run(Build(image="shop", folder=tmp_path), "docker")


def test_a_tool_that_is_not_there_is_one_line(project, monkeypatch):
    monkeypatch.setenv("PATH", "")

    with pytest.raises(ConfigError, match="cannot run nerdctl: No such file"):
        run(Build(image="shop", folder=project), "nerdctl")
    with pytest.raises(ConfigError, match="plugin buildx"):
        run(Build(image="shop", folder=project, platforms=(ARM,)), "docker")
