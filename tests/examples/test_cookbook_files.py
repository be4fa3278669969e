"""The files of `examples/cookbook`: each recipe is short, has generated manifests and a test, and a page is made from it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from ctrlruntime.cli import ctrl
from examples.cookbook import RECIPES

ROOT = Path(__file__).parents[2]
COOKBOOK = ROOT / "examples" / "cookbook"
MOST_LINES = 120


def test_every_module_is_a_recipe():
    modules = {path.stem for path in COOKBOOK.glob("*.py")} - {"__init__", "running"}

    assert sorted(RECIPES) == sorted(modules) == sorted(path.name for path in (COOKBOOK / "config").iterdir())


def test_every_recipe_has_one_test():
    tests = {path.stem.removeprefix("test_") for path in (ROOT / "tests/conformance/cookbook").glob("test_*.py")}

    assert tests == set(RECIPES)


@pytest.mark.parametrize("recipe", RECIPES)
def test_recipe_has_at_most_120_lines(recipe):
    assert len((COOKBOOK / f"{recipe}.py").read_text().splitlines()) <= MOST_LINES


@pytest.mark.parametrize("recipe", RECIPES)
def test_manifests_of_recipe_are_generated_from_it(recipe):
    folder = COOKBOOK / "config" / recipe
    done = CliRunner().invoke(
        ctrl, ["manifests", "--module", f"examples.cookbook.{recipe}", "--output-dir", str(folder), "--check"]
    )

    assert done.exit_code == 0, done.output


def test_page_of_recipe_has_its_docstring_code_and_role(site_pages):
    recipe = next(each for each in site_pages.recipes() if each.module == "website")

    page = site_pages.recipe_page(recipe)

    assert page.startswith("# Website\n\nThe operator keeps a Deployment and a Service")
    assert 'title="examples/cookbook/website.py"\nfrom __future__' in page
    assert "kind: ClusterRole" in page
    assert "Shows:" not in page


def test_page_of_recipe_without_permissions_has_no_role(site_pages):
    recipe = next(each for each in site_pages.recipes() if each.module == "image_policy")

    assert "## The permissions" not in site_pages.recipe_page(recipe)
