"""The debug page as a browser shows it: headless Chromium, the system's own."""

from __future__ import annotations

import asyncio
import re
import shutil

import pytest
from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import core, meta
from ctrlruntime.manager.manager import running
from ctrlruntime.testing import Environment

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

try:
    from playwright.async_api import async_playwright, expect
except ImportError:
    pytest.skip("the debug page is tested with playwright: install the extra dev", allow_module_level=True)
if CHROMIUM is None:
    pytest.skip("the debug page is tested in Chromium: apt-get install chromium", allow_module_level=True)
expect.set_options(timeout=LONGEST_WAIT * 1000)


@pytest.fixture(scope="module")
def server():
    with Environment(backend="embedded") as environment:
        yield environment


@pytest.fixture
async def operator(server):
    """The address of an operator whose reconciles succeed, fail and hang."""
    namespace = server.create_namespace()
    mgr = ctrl.new_manager(
        ctrl.get_config(str(server.kubeconfig_path)),
        metrics_bind_address="0",
        debug_bind_address="127.0.0.1:0",
        cache=ctrl.CacheOptions(namespaces=[namespace]),
    )
    entered, release, failed = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def reconcile(request):
        if request.name == "hangs":
            entered.set()
            await release.wait()
        if request.name == "fails":
            failed.set()
            raise ValueError("<b>no</b> & never")

    ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap).with_options(max_concurrent_reconciles=2).complete(
        reconcile
    )
    async with running(mgr):
        for name in ("fails", "hangs"):
            await mgr.client.create(core.ConfigMap(metadata=meta.ObjectMeta(name=name, namespace=namespace)))
        await asyncio.wait_for(asyncio.gather(entered.wait(), failed.wait()), LONGEST_WAIT)
        yield mgr, namespace, f"http://127.0.0.1:{mgr.debug_address.port}/debug/ctrlruntime/"
        release.set()
    server.delete_namespace(namespace)


@pytest.fixture
async def browser():
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        await browser.close()


async def test_the_page_shows_controllers_queues_watches_and_reconciles(operator, browser):
    _, namespace, url = operator
    page = await browser.new_page()
    problems, asked = [], []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))

    await page.goto(url)

    for section in ("controllers", "running-now", "queues", "watches", "latest-reconciles"):
        await expect(page.locator(f"#{section} table")).to_be_visible()
    await expect(page.locator("#controllers td").first).to_have_text("configmap")
    await expect(page.locator("#running-now")).to_contain_text(f"{namespace}/hangs")
    await expect(page.locator("#running-now")).to_contain_text(
        re.compile(r"test_debug_page_in_browser\.py:\d+ in reconcile")
    )
    await expect(page.locator("#queues")).to_contain_text(re.compile(rf"{namespace}/fails: waiting, due in .*failure"))
    await expect(page.locator("#watches")).to_contain_text(re.compile(r"watching.*ago"))
    # What an error says is text, whatever stands in it.
    await expect(page.locator("#latest-reconciles code").first).to_have_text("ValueError: <b>no</b> & never")
    assert problems == []
    assert {request.removesuffix("favicon.ico").partition("/debug")[0].rstrip("/") for request in asked} == {
        url.partition("/debug")[0]
    }


async def test_a_request_leads_to_the_page_of_its_object(operator, browser):
    _, namespace, url = operator
    page = await browser.new_page()
    await page.goto(f"{url}?refresh=0")

    await page.locator("#running-now").get_by_role("link", name=f"{namespace}/hangs").click()

    await expect(page.locator("h1")).to_have_text(f"ConfigMap {namespace}/hangs")
    await expect(page.locator("pre")).to_contain_text(re.compile(r"now +runs for .*, waits at"))
    await expect(page.locator("pre")).to_contain_text(f"triggers       create ConfigMap {namespace}/hangs@")
    await page.get_by_role("link", name="stop").click()
    await expect(page.get_by_role("link", name="reload every")).to_be_visible()
    await expect(page.locator("h1")).to_have_text(f"ConfigMap {namespace}/hangs")


async def test_the_page_loads_itself_again(operator, browser):
    mgr, namespace, url = operator
    page = await browser.new_page()
    await page.goto(url)
    await mgr.client.create(core.ConfigMap(metadata=meta.ObjectMeta(name="later", namespace=namespace)))

    await expect(page.locator("#latest-reconciles")).to_contain_text(f"{namespace}/later", timeout=LONGEST_WAIT * 1000)


async def test_it_does_not_load_itself_while_you_type_or_read(operator, browser):
    _, namespace, url = operator
    page = await browser.new_page()
    await page.clock.install()
    await page.goto(url)
    await page.evaluate("window.isTheSame = true")
    await page.get_by_label("kind").fill("cm")
    await page.clock.run_for(20_000)
    assert await page.evaluate("window.isTheSame")

    await page.get_by_label("name").fill(f"{namespace}/hangs")
    await page.get_by_role("button", name="why?").click()
    await expect(page.locator("h1")).to_have_text(f"ConfigMap {namespace}/hangs")

    await page.evaluate("window.isTheSame = true")
    await page.clock.run_for(20_000)
    await page.wait_for_function("!window.isTheSame")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_page_can_be_read_in_light_and_dark_and_on_a_phone(operator, browser, scheme):
    _, _, url = operator
    page = await browser.new_page(color_scheme=scheme, viewport={"width": 390, "height": 800})
    await page.goto(f"{url}?refresh=0")

    ink, wide = await page.evaluate(
        "[getComputedStyle(document.body).color, document.documentElement.scrollWidth > window.innerWidth]"
    )
    brightness = sum(int(part) for part in re.findall(r"\d+", ink)[:3])
    assert (brightness > 380) is (scheme == "dark")
    assert not wide  # tables scroll inside, the page does not
