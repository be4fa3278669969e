"""`[tool.ctrlruntime]` read and written, and the rules for names."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from ctrlruntime.errors import ConfigError
from ctrlruntime.project import names
from ctrlruntime.project.settings import (
    Features,
    Resource,
    Settings,
    find_project,
    read_settings,
    write_settings,
)

SHOP = Settings(project_name="shop", package="shop", domain="x.io", image="shop:latest", scaffold_version="0.1.0")
CART = Resource(group="webapp.x.io", version="v1", kind="Cart", plural="carts", storage=True, controller=True)
POD = Resource(group="", version="v1", kind="Pod", plural="pods", is_external=True, defaulting=True)
TABLE = """
[tool.ctrlruntime]
project-name = "shop"
package = "shop"
domain = "x.io"
"""


def project(folder: Path, text: str) -> Path:
    (folder / "pyproject.toml").write_text(text)
    return folder


# Reading


def test_what_is_left_out_has_its_default(tmp_path):
    assert read_settings(project(tmp_path, TABLE)) == Settings(
        project_name="shop", package="shop", domain="x.io", image="shop:latest"
    )


def test_what_is_written_is_read_again(tmp_path):
    image = Resource(
        group="cache.x.io",
        version="v1alpha1",
        kind="Memcached",
        plural="memcacheds",
        namespaced=False,
        image="memcached:1.6",
        image_container_command=("memcached", "-m=64"),
        image_container_port=11211,
        run_as_user=1001,
        spokes=("v1",),
    )
    settings = SHOP.with_resource(CART).with_resource(POD).with_resource(image)

    assert read_settings(project(tmp_path, write_settings("", settings))) == settings


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.ctrlruntime]\ndomain = 'x.io'\npackage = 'shop'", "has no key 'project-name'"),
        (TABLE + "multi-group = true", "has an unknown key 'multi-group'; did you mean 'multigroup'?"),
        (TABLE + "zzz = 1", "has an unknown key 'zzz'"),
        (TABLE + "namespaced = 'yes'", "namespaced must be true or false, not 'yes'"),
        (TABLE + "image = 1", "image must be a string, not 1"),
        (TABLE + "features = true", "features must be a table"),
        (TABLE + "[tool.ctrlruntime.features]\nprometeus = true", "features has an unknown key 'prometeus'; did you mean 'prometheus'?"),
        (TABLE + "resources = {}", "resources must be a list"),
        (TABLE + "[[tool.ctrlruntime.resources]]\ngroup = 'x'", "resources[0] has no key 'version'"),
        (TABLE + "[[tool.ctrlruntime.resources]]\nspokes = [1]\ngroup=''\nversion='v1'\nkind='K'\nplural='ks'", "spokes[0] must be a string"),
        (TABLE + "[[tool.ctrlruntime.resources]]\nimage-container-port=true\ngroup=''\nversion='v1'\nkind='K'\nplural='ks'", "image-container-port must be an integer"),
        (TABLE + "replicas = 5", "replicas requires sharding, because without it one replica works and the others wait. Set sharding = true"),
        (TABLE + "replicas = 0\nsharding = true", "replicas is 0: give a number from 1 to"),
        (TABLE + "[tool.ctrlruntime.features]\nprometheus = true\nmetrics = false", "prometheus requires metrics, which are off. Set metrics = true"),
        (TABLE + "source-dir = ''", "source-dir must be a folder relative to the project's, like src, not ''"),
        (TABLE + "source-dir = '/src'", "source-dir must be a folder relative to the project's, like src, not '/src'"),
        (TABLE + "source-dir = ['src']", "source-dir must be a string"),
        (TABLE.replace('"shop"', '"Shop"', 1), "the project name 'Shop' is not a DNS label"),
        (TABLE.replace('package = "shop"', 'package = "class"'), "the package 'class' is a keyword of Python"),
        (TABLE.replace('"shop"', f'"{"a" * 29}"', 1), "longer than 28 characters, so derived names would be too long"),
        (TABLE + "[[tool.ctrlruntime.resources]]\ngroup=''\nversion='v1'\nkind='Field'\nplural='ks'", "conflicts with a name in the generated code"),
        ("[tool]\nctrlruntime = 1", "tool.ctrlruntime must be a table"),
        ("[tool", "is not TOML"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_one_line_that_names_it(tmp_path, text, message):
    with pytest.raises(ConfigError) as failed:
        read_settings(project(tmp_path, text))

    assert message in str(failed.value)
    assert "\n" not in str(failed.value)
    assert str(tmp_path / "pyproject.toml") in str(failed.value)
    assert "--" not in str(failed.value)


@pytest.mark.parametrize(("source", "found"), [(".", "shop"), ("src", "shop/src"), ("../..", ".")])
def test_the_source_is_relative_to_the_project(tmp_path, source, found):
    folder = tmp_path / "shop"
    settings = replace(SHOP, source_dir=source)

    text = write_settings("", settings)

    assert settings.source_in(folder) == (tmp_path / found if found != "." else tmp_path.parent)
    assert tomllib.loads(text)["tool"]["ctrlruntime"].get("source-dir", ".") == source
    assert ("source-dir" in text) is (source != ".")


def test_the_nearest_project_upwards_is_found(tmp_path):
    project(tmp_path, TABLE)
    inner = tmp_path / "shop" / "api"
    inner.mkdir(parents=True)
    project(inner, "[project]\nname = 'no-project-of-ours'")

    assert find_project(inner) == tmp_path


def test_outside_a_project_the_advice_is_init(tmp_path):
    with pytest.raises(ConfigError, match=r"is not in a project.*`ctrl init`"):
        find_project(tmp_path)
    with pytest.raises(ConfigError, match="is not a project"):
        read_settings(tmp_path)


# Writing


def test_what_a_person_wrote_stays(tmp_path):
    text = '[project]\nname   =   "shop" # ours\n\n' + write_settings("", SHOP).replace(
        "multigroup = false", "multigroup = false  # not yet"
    ) + "\n[tool.ruff]\nline-length = 90\n"  # fmt: skip

    written = write_settings(text, SHOP.with_resource(CART))

    assert [line for line in text.splitlines() if line not in written.splitlines()] == []
    assert tomllib.loads(written)["tool"]["ctrlruntime"]["resources"][0]["kind"] == "Cart"


def test_the_same_settings_change_no_byte():
    text = "# top\n" + write_settings("", SHOP.with_resource(CART).with_resource(POD)) + "\n\n\n# bottom"

    assert write_settings(text, SHOP.with_resource(CART).with_resource(POD)) == text


def test_a_value_that_is_back_at_its_default_goes_and_switches_stay():
    text = write_settings("", SHOP.with_resource(CART))

    written = write_settings(
        text,
        Settings(
            project_name="shop",
            package="shop",
            domain="x.io",
            image="shop:latest",
            features=Features(prometheus=True, network_policy=False),
            resources=(Resource(group="webapp.x.io", version="v1", kind="Cart", plural="carts"),),
        ),
    )

    table = tomllib.loads(written)["tool"]["ctrlruntime"]
    assert table["resources"] == [{"group": "webapp.x.io", "version": "v1", "kind": "Cart", "plural": "carts"}]
    assert table["features"] == {"cert-manager": True, "metrics": True, "network-policy": False, "prometheus": True}
    assert table["multigroup"] is False


def test_comments_stay_with_their_resource_and_one_empty_line_is_between():
    text = write_settings("", SHOP.with_resource(CART)).replace('kind = "Cart"', 'kind = "Cart"  # the best')

    written = write_settings(text, SHOP.with_resource(CART).with_resource(POD))

    assert written.endswith(
        '\n\n[[tool.ctrlruntime.resources]]\ngroup = ""\nversion = "v1"\nkind = "Pod"\nplural = "pods"\nexternal = true\n'
        'defaulting = true\n\n[[tool.ctrlruntime.resources]]\ngroup = "webapp.x.io"\nversion = "v1"\nkind = "Cart"  # the best\n'
        'plural = "carts"\nstorage = true\ncontroller = true\n'
    )


@pytest.mark.parametrize("rest", ["", "\n# the end\n", "\n[tool.ruff]\nline-length = 90\n"])
@pytest.mark.parametrize("before", [SHOP, SHOP.with_resource(POD)])
def test_a_resource_that_goes_again_leaves_no_trace(before, rest):
    text = write_settings("", before) + rest

    added = write_settings(text, before.with_resource(CART))

    assert added != text
    assert write_settings(added, before.with_resource(CART).without_resource(CART)) == text


def test_a_text_that_is_no_toml_is_not_written_over():
    with pytest.raises(ConfigError, match="is not TOML"):
        write_settings("[project", SHOP)


# kubebuilder's PROJECT


def test_a_project_in_go_is_not_read_and_the_message_has_the_command(tmp_path):
    folder = tmp_path / "my shop"
    folder.mkdir()
    (folder / "PROJECT").write_text("version: '3'")
    project(folder, "[project]\nname = 'x'")

    with pytest.raises(ConfigError) as failed:
        read_settings(folder)

    assert find_project(folder) == folder
    assert f"Take it over into a new folder: `ctrl init '{folder}-python' --from '{folder}'`" in str(failed.value)
    assert read_settings(project(folder, TABLE)).domain == "x.io"


# Names


@pytest.mark.parametrize(
    ("rule", "good"),
    [
        (names.project_name, "shop-2"),
        (names.package, "my_shop"),
        (names.domain, "x.io"),
        (names.group, "webapp"),
        (names.group, "web.app"),
        (names.version, "v2beta3"),
        (names.kind, "HTTPRoute"),
        (names.plural, "carts"),
    ],
)
def test_good_names_are_taken(rule, good):
    assert rule(good) == good


@pytest.mark.parametrize(
    ("rule", "bad"),
    [
        *((names.project_name, bad) for bad in ("", "Shop", "-a", "a_b", "2048", "a" * 29)),
        *((names.package, bad) for bad in ("", "my-shop", "1a", "class", "match", "json", "ctrlruntime", "tests", "größe")),
        *((names.package, bad) for bad in ("test", "build", "Build", "bundle", "conftest", "makefile", "pydantic", "yaml")),
        *((names.domain, bad) for bad in ("", "localhost", "X.io", "x..io", "a." * 130 + "io")),
        *((names.group, bad) for bad in ("", "Webapp", "web_app", "a" * 64)),
        *((names.version, bad) for bad in ("", "1", "v0", "v1rc1", "v1beta", "V1", "v01")),
        *((names.kind, bad) for bad in ("", "cart", "Shop-Cart", "Class", "None", "Field", "Tests", "K" * 64)),
        *((names.plural, bad) for bad in ("", "Carts", "1carts", "my_carts")),
    ],
)  # fmt: skip
def test_bad_names_are_refused_with_the_cause_alone(rule, bad):
    with pytest.raises(ConfigError) as failed:
        rule(bad)

    message = str(failed.value)
    assert repr(bad) in message
    assert "--" not in message
    assert ";" not in message
    assert ". " not in message.replace(repr(bad), "")


def test_any_text_becomes_a_label():
    assert [names.label(text) for text in ("My Shop", "shop_2", "__", "größe")] == ["my-shop", "shop-2", "", "gr-e"]
