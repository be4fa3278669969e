"""No error and no repr of the client shows a secret, however an address or a file spells it."""

import base64
import json
import pprint
import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_rest_credentials import plugin, printing

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.cache.reflector import Change, Listed, Replaced
from ctrlruntime.certificates import make_authority
from ctrlruntime.client.observers import Write
from ctrlruntime.errors import ConfigError, CtrlError
from ctrlruntime.rest.collection import Page
from ctrlruntime.rest.config import Config, ProxyEnvironment, get_config
from ctrlruntime.rest.connection import Headers
from ctrlruntime.rest.credentials import CredentialError
from ctrlruntime.rest.pool import Address
from ctrlruntime.rest.redaction import shown_url
from ctrlruntime.rest.transport import Response, Transport
from ctrlruntime.rest.watch import Frame
from ctrlruntime.testing.faults.match import describe
from ctrlruntime.testing.faults.plan import OnlyToken
from ctrlruntime.testing.faults.traffic import Upstream
from ctrlruntime.webhook.request import AdmissionRequest

SPELLINGS = [
    "http://user:s3cret@proxy:3128",
    "http://user:p@s3cret@proxy:3128",
    "http://user:s3cret/x@proxy:3128",
    "http://user:s3cret?x@proxy:3128",
    "http://user:s3cret#x@proxy:3128",
    "http://user:%733cret%40s3cret@proxy",
    "http://s3cret@proxy:3128",
    "http://:s3cret@proxy:3128",
    "user:s3cret@proxy:3128",
    "//user:s3cret@proxy:3128",
    "http:/user:s3cret@proxy:3128",
    "http:\\\\user:s3cret@proxy:3128",
    "http://user:s3cret@[::1]:3128",
    "http://user:s3cret@[::1",
    "http://[::1]:s3cret",
    "socks5://user:s3cret@proxy:1080",
    "socks5h://s3cret@proxy",
    "http://proxy:3128/?token=s3cret",
    "http://proxy:3128#s3cret",
    "HTTP://user:s3cret@proxy:3128",
    "  http://user:s3cret@proxy:3128\n",
    "http://user:s3cret @proxy:3128",
    "http://us er:s3\tcret s3cret@proxy",
    "http://user:s3cret",
    "http://user:s3cret/path",
    "user:s3cret",
    "https://user:s3cret@proxy:99999",
    "https://user:s3cret@",
    "ftp://user:s3cret@proxy",
]


def everything(error):
    """Return all that a log would show of an error, its causes included."""
    return "".join(traceback.format_exception(error)) + repr(error)


@pytest.mark.parametrize("url", SPELLINGS)
def test_no_spelling_of_an_address_shows_its_secret(url):
    assert "s3cret" not in shown_url(url)


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("https://host:6443", "https://host:6443"),
        ("http://user:p@ss@proxy:3128/path", "http://…@proxy:3128/path"),
        ("https://[fd00::1]:6443/x", "https://[fd00::1]:6443/x"),
        ("https://[fd00::1]/x", "https://[fd00::1]/x"),
        ("http://proxy/?a=b", "http://proxy/?…"),
        ("", ""),
    ],
)
def test_what_is_no_secret_is_shown(url, text):
    assert shown_url(url) == text


@given(st.text(max_size=40), st.text(max_size=10), st.sampled_from(["", "http://", "SOCKS5://", "//", " https://"]))
def test_what_stands_before_the_host_is_never_shown(secret, user, scheme):
    assert shown_url(f"{scheme}{user}:{secret}@host:1") in {f"{scheme.strip()}…@host:1", "…@host:1"}


@pytest.mark.parametrize("url", SPELLINGS)
def test_a_proxy_shows_no_secret_wherever_it_stands(url, tmp_path):
    assert "s3cret" not in repr(ProxyEnvironment(https_proxy=url, http_proxy=url))
    path = tmp_path / "config"
    cluster = {"server": "https://h:1", "proxy-url": url}
    path.write_text(json.dumps(kubeconfig(cluster)))
    for make in (
        lambda: Config(host="https://h:1", proxy_url=url),
        lambda: get_config(str(path), environ={}),
        lambda: get_config(environ={"HTTPS_PROXY": url, "KUBECONFIG": str(write(tmp_path))}),
    ):
        try:
            config = make()
            shown = repr(config) + pprint.pformat(config)
            transport = Transport(config)
            shown += repr(transport._proxy)
        except ConfigError as error:
            shown = everything(error)
        assert "s3cret" not in shown


@pytest.mark.parametrize("url", SPELLINGS)
async def test_a_server_shows_no_secret(url, tmp_path):
    path = tmp_path / "config"
    path.write_text(json.dumps(kubeconfig({"server": url})))
    try:
        config = get_config(str(path), environ={})
        shown = repr(config)
        transport = Transport(config)
        shown += transport.host + repr(transport._address)
    except ConfigError as error:
        shown = everything(error)
    assert "s3cret" not in shown


async def test_a_request_that_fails_shows_no_secret():
    transport = Transport(Config(host="http://user:s3cret@127.0.0.1:1"))

    with pytest.raises(CtrlError) as caught:
        await transport.request("GET", "/api")

    assert "s3cret" not in everything(caught.value)
    assert "http://…@127.0.0.1:1" in str(caught.value)
    await transport.close()


def kubeconfig(cluster, user=None):
    return {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", **({"user": "u"} if user else {})}}],
        "clusters": [{"name": "k", "cluster": cluster}],
        "users": [{"name": "u", "user": user or {}}],
    }


def write(folder):
    path = folder / "plain"
    path.write_text(json.dumps(kubeconfig({"server": "https://h:1"})))
    return path


@pytest.mark.parametrize(
    "text",
    [
        "users: [{name: u, user: {token: s3cret}]\n",
        "users:\n- name: u\n  user: {token: 's3cret}\n",
        "token: s3cret\n\t- x",
        "insecure-skip-tls-verify: s3cret: x\n",
        "s3cret",
        "[s3cret]",
        "token: !!python/object:s3cret.x {}\n",
        "token: !s3cret\n",
        "token: !s3cret!x y\n",
        "token: *s3cret\n",
        "token: 2026-99-99\n",
        "token: " + "[" * 5000,
        json.dumps(kubeconfig({"server": "https://h:1", "insecure-skip-tls-verify": "s3cret"})),
        json.dumps(kubeconfig({"server": "https://h:1"}, {"token": ["s3cret"]})),
        json.dumps(kubeconfig({"server": "https://h:1"}, {"client-key-data": "s3cret-"})),
        json.dumps(kubeconfig({"server": "https://h:1"}, {"client-key-data": base64.b64encode(b"s3cret").decode()})),
        json.dumps(kubeconfig({"server": "https://h:1"}, {"token": "s3cret", "username": "u", "password": "s3cret"})),
        json.dumps(kubeconfig({"server": "https://h:1"}, {"exec": {"command": "x", "args": ["s3cret"]}})),
    ],
)
def test_a_kubeconfig_that_is_wrong_shows_no_secret(text, tmp_path):
    path = tmp_path / "config"
    path.write_text(text)

    with pytest.raises(ConfigError) as caught:
        get_config(str(path), environ={})

    assert "s3cret" not in everything(caught.value)


@pytest.mark.parametrize(
    "code",
    [
        "import sys; print('s3' 'cret'); sys.exit('s3' 'cret')",
        "print('s3' 'cret')",
        "print('[\"s3' 'cret\"]')",
        "print('{\"kind\": \"s3' 'cret\"}')",
        printing({"token": "t", "expirationTimestamp": "s3cret"}),
        printing(["s3cret"]),
        "print('[' * 100_000)",
    ],
)
def test_what_a_plugin_printed_is_in_no_error(code):
    with pytest.raises(CredentialError) as caught:
        plugin(code)()

    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_what_a_plugin_writes_to_stderr_goes_to_ours(capfd):
    with pytest.raises(CredentialError, match="stderr"):
        plugin("import sys; sys.exit('log in first')")()

    assert "log in first" in capfd.readouterr().err


def test_keys_are_in_no_repr():
    authority = make_authority("test")
    pair = authority.server(["localhost"])

    assert "PRIVATE" not in repr(pair) + str(pair) + repr(authority) + f"{pair}" + pprint.pformat(authority)


def test_arguments_and_environment_of_a_plugin_are_in_no_repr():
    shown = repr(plugin("s3cret", env={"A": "s3cret"}, cluster_info={"a": "s3cret"}))

    assert "s3cret" not in shown


@pytest.mark.parametrize(
    "value",
    [
        Response(200, Headers(), b"s3cret"),
        Frame("ADDED", b"s3cret"),
        Page([b"s3cret"], "5", "", None),
        Address.parse("http://user:s3cret@proxy"),
        Write("create", GroupVersionKind("", "v1", "Secret"), "a", "b", "", "", False, b"s3cret", b"s3cret", b"s3cret"),
        Change("ADDED", b"s3cret"),
        Listed([b"s3cret"], 0),
        Replaced([b"s3cret"], "1", [Change("ADDED", b"s3cret")]),
        AdmissionRequest(object=b"s3cret", old_object=b"s3cret"),
        OnlyToken(token="s3cret"),
        Upstream("h", 1, "", None, None, (("Authorization", "Bearer s3cret"),)),
        describe(0.0, "POST", "/api", body=b"s3cret"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_content_and_credentials_are_in_no_repr(value):
    assert "s3cret" not in repr(value)
