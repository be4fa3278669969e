import base64
import datetime as dt
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import yaml

from ctrlruntime.certificates import make_authority
from ctrlruntime.errors import ConfigError, NoConfigError
from ctrlruntime.rest.config import (
    Config,
    Impersonation,
    ProxyEnvironment,
    default_user_agent,
    get_config,
)
from ctrlruntime.rest.credentials import BasicAuth, IssuedCredential, StaticToken, TokenFile
from ctrlruntime.rest.tls import TLSConfig


@pytest.fixture(scope="module")
def authority():
    return make_authority()


def kubeconfig(*, context="c", server="https://one:6443", cluster=None, user=None, current="c", **top):
    return {
        "kind": "Config",
        "clusters": [{"name": "k", "cluster": {"server": server, **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": context, "context": {"cluster": "k", "user": "u", "namespace": "ns"}}],
        "current-context": current,
        **top,
    }


class World:
    """The files and the environment that get_config sees."""

    def __init__(self, folder):
        self.folder, self.environ = folder, {}

    def write(self, name, content):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
        return str(path)

    def get(self, *args, **kwargs):
        return get_config(
            *args,
            environ=self.environ,
            home=str(self.folder / "home"),
            service_account=str(self.folder / "account"),
            **kwargs,
        )

    def be_pod(self, authority, *, token="pod-token"):
        self.environ |= {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
        if token:
            self.write("account/token", token)
        self.write("account/ca.crt", authority.pem.decode())
        self.write("account/namespace", "pods-own\n")


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


# --- precedence -----------------------------------------------------------------------------------------------------


def test_the_flag_wins_over_the_variable_over_the_pod_over_home(world, authority):
    flag = world.write("flag", kubeconfig(server="https://flag"))
    variable = world.write("variable", kubeconfig(server="https://variable"))
    world.write("home/.kube/config", kubeconfig(server="https://home"))

    assert world.get().host == "https://home"
    world.be_pod(authority)
    assert world.get().host == "https://10.0.0.1:443"
    world.environ["KUBECONFIG"] = variable
    assert world.get().host == "https://variable"
    assert world.get(flag).host == "https://flag"


def test_nothing_at_all_is_an_error_of_its_own(world):
    with pytest.raises(NoConfigError, match=r"KUBECONFIG is not set, this is not a pod, and .*/\.kube/config does not"):
        world.get()


def test_an_empty_variable_is_no_configuration(world):
    world.environ["KUBECONFIG"] = ""

    with pytest.raises(NoConfigError):
        world.get()


def test_a_given_file_that_is_missing_is_no_reason_to_look_elsewhere(world):
    world.write("home/.kube/config", kubeconfig())

    with pytest.raises(ConfigError, match="kubeconfig /nowhere does not exist") as caught:
        world.get("/nowhere")
    assert not isinstance(caught.value, NoConfigError)


def test_a_variable_that_names_only_missing_files_is_an_error(world):
    world.environ["KUBECONFIG"] = "/nowhere/a:/nowhere/b"

    with pytest.raises(ConfigError, match="/nowhere/a and /nowhere/b do not exist") as caught:
        world.get()
    assert not isinstance(caught.value, NoConfigError)


def test_a_context_means_a_kubeconfig_also_in_a_pod(world, authority):
    world.be_pod(authority)

    with pytest.raises(ConfigError, match="context 'c' was requested without a kubeconfig") as caught:
        world.get(context="c")
    assert not isinstance(caught.value, NoConfigError)
    world.write("home/.kube/config", kubeconfig())
    assert world.get(context="c").host == "https://one:6443"


# --- in a pod -------------------------------------------------------------------------------------------------------


async def test_a_pod_uses_its_service_account(world, authority):
    world.be_pod(authority)

    config = world.get()

    assert config.namespace == "pods-own"
    assert config.tls == TLSConfig(ca_file=str(world.folder / "account/ca.crt"))
    assert await config.credential.headers() == {"Authorization": "Bearer pod-token"}


def test_a_pod_on_ipv6_gets_brackets(world, authority):
    world.be_pod(authority)
    world.environ["KUBERNETES_SERVICE_HOST"] = "fd00::1"

    assert world.get().host == "https://[fd00::1]:443"


def test_a_pod_without_a_token_says_what_to_do(world, authority):
    world.be_pod(authority, token="")

    with pytest.raises(ConfigError, match="automountServiceAccountToken") as caught:
        world.get()
    assert not isinstance(caught.value, NoConfigError)


# --- several files --------------------------------------------------------------------------------------------------


def test_of_two_entries_with_one_name_the_first_wins_and_missing_files_are_skipped(world):
    first = world.write("first", kubeconfig(server="https://first", current=""))
    second = kubeconfig(server="https://second", current="other")
    second["clusters"].append({"name": "k2", "cluster": {"server": "https://k2"}})
    second["contexts"].append({"name": "other", "context": {"cluster": "k2", "user": "u"}})
    world.environ["KUBECONFIG"] = f"/nowhere:{first}:{world.write('second', second)}:"

    assert world.get(context="c").host == "https://first"
    assert world.get().host == "https://k2"


def test_of_two_current_contexts_the_first_wins(world):
    first = world.write("first", kubeconfig(server="https://first"))
    second = world.write("second", kubeconfig(context="d", server="https://second", current="d"))
    world.environ["KUBECONFIG"] = f"{first}:{second}"

    assert world.get().host == "https://first"


def test_relative_paths_start_at_the_folder_of_their_own_file(world, authority):
    world.write("a/ca.crt", authority.pem.decode())
    world.write("b/token", "from-b")
    clusters = kubeconfig(cluster={"certificate-authority": "ca.crt"}, user=None)
    del clusters["users"]
    users = {"users": [{"name": "u", "user": {"tokenFile": "token"}}]}
    world.environ["KUBECONFIG"] = f"{world.write('a/config', clusters)}:{world.write('b/config', users)}"

    config = world.get()

    assert config.tls.ca_file == str(world.folder / "a/ca.crt")
    assert config.credential.path == str(world.folder / "b/token")


def test_an_empty_file_among_several_is_fine(world):
    world.environ["KUBECONFIG"] = f"{world.write('empty', '')}:{world.write('full', kubeconfig())}"

    assert world.get().host == "https://one:6443"


# --- a table of kubeconfigs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"server": "https://h:6443/"}, {"host": "https://h:6443"}),
        ({"server": "https://h/k8s/clusters/c-1/"}, {"host": "https://h/k8s/clusters/c-1"}),
        ({"server": "h:8080"}, {"host": "http://h:8080"}),
        ({"server": "h", "cluster": {"insecure-skip-tls-verify": True}}, {"host": "https://h"}),
        ({"server": "http://h"}, {"host": "http://h"}),
        ({"cluster": {"proxy-url": "http://p:3128"}}, {"proxy_url": "http://p:3128"}),
        ({"cluster": {"proxy-url": "socks5://p"}}, {"proxy_url": "socks5://p"}),
        ({}, {"namespace": "ns", "credential": None, "impersonate": None, "proxy_url": None}),
        ({"user": {"as": "jane"}}, {"impersonate": Impersonation(user="jane")}),
        (
            {"user": {"as": "jane", "as-uid": "7", "as-groups": ["a", "b"], "as-user-extra": {"k": ["v"]}}},
            {"impersonate": Impersonation(user="jane", uid="7", groups=("a", "b"), extra={"k": ("v",)})},
        ),
    ],
)
def test_what_a_kubeconfig_means(world, given, expected):
    config = world.get(world.write("config", kubeconfig(**given)))

    assert {name: getattr(config, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        ({"insecure-skip-tls-verify": True}, {"insecure_skip_verify": True}),
        ({"tls-server-name": "kubernetes"}, {"server_name": "kubernetes"}),
        ({}, {"insecure_skip_verify": False, "server_name": None, "ca_data": None, "ca_file": None}),
    ],
)
def test_what_a_cluster_means_for_tls(world, cluster, expected):
    tls = world.get(world.write("config", kubeconfig(cluster=cluster))).tls

    assert {name: getattr(tls, name) for name in expected} == expected


def test_certificate_data_is_decoded_and_wrapped_lines_are_fine(world, authority):
    pair = authority.client("jane")
    encoded = {
        "certificate-authority-data": "\n".join(textwrap.wrap(base64.b64encode(authority.pem).decode(), 64)),
    }
    user = {
        "client-certificate-data": base64.b64encode(pair.certificate).decode(),
        "client-key-data": base64.b64encode(pair.key).decode(),
    }

    tls = world.get(world.write("config", kubeconfig(cluster=encoded, user=user))).tls

    assert (tls.ca_data, tls.cert_data, tls.key_data) == (authority.pem, pair.certificate, pair.key)


OIDC = {"name": "oidc", "config": {"idp-issuer-url": "https://i", "client-id": "c"}}
EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "command": "login", "interactiveMode": "Never"}


@pytest.mark.parametrize(
    ("user", "kind"),
    [
        ({}, type(None)),
        ({"token": "t"}, StaticToken),
        ({"token": 12345}, StaticToken),
        ({"tokenFile": "t"}, TokenFile),
        ({"token": "t", "tokenFile": "t"}, TokenFile),
        ({"username": "u", "password": "p"}, BasicAuth),
        ({"exec": EXEC}, IssuedCredential),
        ({"token": "t", "exec": EXEC}, StaticToken),
        ({"auth-provider": OIDC}, IssuedCredential),
    ],
)
def test_which_credential_a_user_has(world, user, kind):
    assert isinstance(world.get(world.write("config", kubeconfig(user=user))).credential, kind)


def test_a_context_without_a_user_is_anonymous(world):
    content = kubeconfig()
    del content["contexts"][0]["context"]["user"]

    assert world.get(world.write("config", content)).credential is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: [", "is not YAML: .* in line \\d"),
        ("- a", "contains a list; a kubeconfig is a mapping"),
        ("", "no current-context is set; name one \\(contexts there: none\\)"),
        (kubeconfig(current=""), "no current-context is set; name one \\(contexts there: c\\)"),
        (kubeconfig(current="gone"), "context 'gone' does not exist; contexts there: c"),
        (kubeconfig(clusters=[]), "context 'c' names the cluster 'k', which is not defined; clusters there: none"),
        (kubeconfig(users=[]), "context 'c' names the user 'u', which is not defined; users there: none"),
        (kubeconfig(clusters={"k": 1}), "clusters of 'the file' must be a list, not dict"),
        (kubeconfig(users=[{"user": {}}]), "item 1 of users has no name"),
        (kubeconfig(users=[{"name": "u"}, {"name": "u"}]), "users has two items named 'u'"),
        (kubeconfig(server=""), "cluster 'k' has no server"),
        (kubeconfig(server="ftp://h"), "address 'ftp://h' is not of the form https://host:port"),
        (kubeconfig(cluster={"insecure-skip-tls-verify": "yes"}), "must be true or false, not str"),
        (
            kubeconfig(cluster={"certificate-authority": "gone.crt"}),
            "cannot read the certificate authority .*/gone.crt",
        ),
        (kubeconfig(cluster={"certificate-authority-data": "!"}), "certificate-authority-data of 'k' is not base64"),
        (kubeconfig(cluster={"proxy-url": "socks4://u:secret@p"}), r"proxy socks4://…@p is not supported"),
        (
            kubeconfig(user={"client-certificate": "gone.crt", "client-key": "x"}),
            "cannot read the client certificate .*/gone.crt",
        ),
        (kubeconfig(user={"token": "t", "username": "u"}), "has a token and a password; remove one"),
        (kubeconfig(user={"exec": EXEC, "auth-provider": {}}), "has exec and auth-provider; remove one"),
        (
            kubeconfig(user={"exec": {**EXEC, "apiVersion": "client.authentication.k8s.io/v1alpha1"}}),
            "uses .*v1alpha1",
        ),
        (kubeconfig(user={"exec": {**EXEC, "interactiveMode": "Always"}}), "needs a terminal"),
        (kubeconfig(user={"exec": {"apiVersion": EXEC["apiVersion"]}}), "has no command"),
        (
            kubeconfig(user={"auth-provider": {"name": "x"}}),
            "auth-provider 'x', which is not supported; use an exec plugin",
        ),
        (kubeconfig(user={"auth-provider": {"name": "gcp"}}), "use the exec plugin gke-gcloud-auth-plugin"),
        (kubeconfig(user={"auth-provider": {"name": "oidc"}}), "needs idp-issuer-url and client-id"),
        (kubeconfig(user={"as-groups": ["g"]}), "without `as`"),
        (kubeconfig(user={"as": "jane", "as-user-extra": {"a": 1.5}}), "a of .* must be a list, not float"),
    ],
)
def test_what_is_wrong_is_said(world, content, message):
    path = world.write("config", content)

    with pytest.raises(ConfigError, match=message) as caught:
        world.get(path)
    assert not isinstance(caught.value, NoConfigError)


def test_a_file_of_any_size_is_not_read(world):
    with pytest.raises(ConfigError, match="more than 16 MiB"):
        world.get("/dev/zero")


def test_an_unknown_context_lists_those_there_are(world):
    with pytest.raises(ConfigError, match="context 'prod' does not exist; contexts there: c"):
        world.get(world.write("config", kubeconfig()), "prod")


def test_an_expired_client_certificate_is_named_with_its_date(world, authority):
    pair = make_authority(lifetime=7200).client("jane")
    user = {
        "client-certificate-data": base64.b64encode(pair.certificate).decode(),
        "client-key-data": base64.b64encode(pair.key).decode(),
    }
    path = world.write("config", kubeconfig(user=user))
    later = dt.datetime.now(dt.UTC) + dt.timedelta(days=1)

    assert world.get(path).tls.cert_data == pair.certificate
    with pytest.raises(ConfigError, match=rf"user 'u' \(jane\) expired on {later - dt.timedelta(days=1):%Y-}"):
        world.get(path, now=later.timestamp)
    with pytest.raises(ConfigError, match="check this machine's clock"):
        world.get(path, now=lambda: 0.0)


async def test_the_plugin_is_told_the_cluster_it_asks_about(world, authority):
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "a"}}
    cluster = {
        "certificate-authority-data": base64.b64encode(authority.pem).decode(),
        "tls-server-name": "kubernetes",
        "extensions": [extension],
    }
    plugin = world.write(
        "bin/plugin",
        f'#!{sys.executable}\nimport os, json\ninfo = json.loads(os.environ["KUBERNETES_EXEC_INFO"])\nprint(json.dumps({{**info, "status": {{"token": json.dumps([info["spec"], os.environ["MINE"]])}}}}))\n',
    )
    Path(plugin).chmod(0o755)  # noqa: ASYNC240 - a file of this test
    user = {
        "exec": {**EXEC, "command": "bin/plugin", "provideClusterInfo": True, "env": [{"name": "MINE", "value": "m"}]}
    }

    config = world.get(world.write("config", kubeconfig(cluster=cluster, user=user)))

    told, mine = json.loads((await config.credential.headers())["Authorization"].removeprefix("Bearer "))
    assert mine == "m"
    assert told == {
        "interactive": False,
        "cluster": {
            "server": "https://one:6443",
            "tls-server-name": "kubernetes",
            "certificate-authority-data": base64.b64encode(authority.pem).decode(),
            "config": {"audience": "a"},
        },
    }


# --- proxies --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "no_proxy", "is_proxied"),
    [
        ("https://api.example.com", "", True),
        ("https://localhost:6443", "", False),
        ("https://127.0.0.1:6443", "", False),
        ("https://[::1]:6443", "", False),
        ("https://api.example.com", "*", False),
        ("https://api.example.com", "example.com", False),
        ("https://example.com", "example.com", False),
        ("https://notexample.com", "example.com", True),
        ("https://api.example.com", ".example.com", False),
        ("https://example.com", ".example.com", True),
        ("https://api.example.com", "*.example.com", False),
        ("https://api.EXAMPLE.com", " Example.COM ,", False),
        ("https://api.example.com:6443", "example.com:6443", False),
        ("https://api.example.com:6443", "example.com:443", True),
        ("https://api.example.com", "example.com:443", False),
        ("https://10.1.2.3:6443", "10.0.0.0/8", False),
        ("https://11.1.2.3:6443", "10.0.0.0/8", True),
        ("https://10.1.2.3:6443", "10.1.2.3", False),
        ("https://10.1.2.3:6443", "10.1.2.3:6443", False),
        ("https://10.1.2.3:6443", "10.1.2.3:443", True),
        ("https://10.1.2.3", "1.2.3", False),
        ("https://[fd00::7]:6443", "fd00::/8", False),
        ("https://[fd00::7]:6443", "[fd00::7]:6443", False),
        ("https://[fd00::7]:6443", "fd00::7", False),
        ("https://api.example.com", "10.0.0.0/8,nonsense/99", True),
    ],
)
def test_no_proxy_is_read_as_go_reads_it(url, no_proxy, is_proxied):
    proxies = ProxyEnvironment(https_proxy="http://p:3128", no_proxy=no_proxy)

    assert proxies.proxy_for(url) == ("http://p:3128" if is_proxied else None)


def test_the_upper_case_variable_wins_and_each_scheme_has_its_own():
    proxies = ProxyEnvironment.read(
        {"HTTPS_PROXY": "upper:1", "https_proxy": "lower:1", "http_proxy": "http://plain:1"}
    )

    assert proxies.proxy_for("https://h") == "http://upper:1"
    assert proxies.proxy_for("http://h") == "http://plain:1"


def test_the_kubeconfigs_proxy_wins_over_the_environment(world):
    world.environ |= {"HTTPS_PROXY": "http://env:1", "NO_PROXY": "one"}

    assert world.get(world.write("a", kubeconfig())).proxy_for() is None
    assert world.get(world.write("b", kubeconfig(server="https://two"))).proxy_for("two") == "http://env:1"
    assert world.get(world.write("c", kubeconfig(cluster={"proxy-url": "http://p:1"}))).proxy_for() == "http://p:1"


# --- Config itself --------------------------------------------------------------------------------------------------


def test_impersonation_repeats_headers_and_escapes_keys():
    config = Config(
        host="https://h",
        impersonate=Impersonation(user="j", groups=("a", "b"), extra={"acme.com/Project": ("x", "y")}),
    )

    assert config.impersonation_headers() == [
        ("Impersonate-User", "j"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-acme.com%2fproject".replace("%2f", "%2F"), "x"),
        ("Impersonate-Extra-acme.com%2Fproject", "y"),
    ]


def test_the_repr_shows_no_secrets(world, authority):
    pair = authority.client("jane")
    user = {"token": "s3cret", "client-key-data": base64.b64encode(pair.key).decode()}
    user["client-certificate-data"] = base64.b64encode(pair.certificate).decode()
    config = world.get(world.write("config", kubeconfig(user=user, cluster={"proxy-url": "http://joe:s3cret@proxy:1"})))

    assert "https://one:6443" in repr(config)
    assert "s3cret" not in repr(config)
    assert "PRIVATE" not in repr(config)
    assert "PRIVATE" not in str(config)


@pytest.mark.parametrize(
    "options",
    [{"timeout": 0}, {"connect_timeout": -1}, {"qps": 0}, {"burst": 0}, {"max_connections": 0}, {"host": "h:1"}],
)
def test_bad_options_fail_at_construction(options):
    with pytest.raises(ConfigError):
        Config(**{"host": "https://h", **options})


def test_the_user_agent_names_program_and_version():
    assert "/ctrlruntime-" in default_user_agent()
    assert default_user_agent().isascii()


async def test_a_configuration_of_kubernetes_asyncio_is_accepted(authority, tmp_path):
    from kubernetes_asyncio.client import Configuration

    theirs = Configuration(host="https://h:1/")
    theirs.api_key["BearerToken"] = "one"
    theirs.api_key_prefix["BearerToken"] = "Bearer"
    theirs.ssl_ca_cert = "/ca.crt"
    theirs.verify_ssl = False
    theirs.tls_server_name = "kubernetes"
    theirs.proxy = "http://p:1"

    config = Config.from_configuration(theirs, environ={})

    assert (config.host, config.proxy_for()) == ("https://h:1", "http://p:1")
    assert config.tls == TLSConfig(insecure_skip_verify=True, server_name="kubernetes")
    assert await config.credential.headers() == {"Authorization": "Bearer one"}


# --- what it costs --------------------------------------------------------------------------------------------------


def run_python(code, **env):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        env={**os.environ, **env},
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_get_config_loads_neither_aiohttp_nor_kubernetes_asyncio(world):
    path = world.write("config", kubeconfig(user={"auth-provider": OIDC}))

    loaded = run_python(
        """
        import sys
        from ctrlruntime.rest.config import get_config
        get_config()
        print([name for name in sys.modules if name.split(".")[0] in {"aiohttp", "kubernetes_asyncio", "cryptography"}])
        """,
        KUBECONFIG=path,
    )

    assert loaded == "[]"


@pytest.mark.parametrize("order", ["before", "after"])
def test_the_users_own_import_of_kubernetes_asyncio_works(order):
    code = """
        import sys
        def ours():
            from ctrlruntime.rest.kubeconfig import kubernetes_asyncio_piece
            known = {n for n in sys.modules if n.startswith("kubernetes_asyncio")}
            assert kubernetes_asyncio_piece("config.openid").OpenIDRequestor.refresh_token
            assert known == {n for n in sys.modules if n.startswith("kubernetes_asyncio")}
        def theirs():
            from kubernetes_asyncio.client import V1Pod, Configuration
            from kubernetes_asyncio.config import kube_config
            import kubernetes_asyncio
            assert V1Pod.__name__ == "V1Pod"
            assert kube_config.Configuration is Configuration is kubernetes_asyncio.client.Configuration
        """
    calls = "ours(); theirs(); ours()" if order == "after" else "theirs(); ours(); theirs()"

    assert run_python(textwrap.dedent(code) + calls + "\nprint('works')") == "works"
