"""A chart gives the objects of the kustomize tree, for each setting of its values; and what a person made of it stays."""

from __future__ import annotations

import re
import shutil
import subprocess
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from ctrlruntime.errors import ConfigError
from ctrlruntime.project.config import derived_files
from ctrlruntime.project.config.refresh import made_by, refresh
from ctrlruntime.project.helm import chart_files
from ctrlruntime.project.helm import refresh as refresh_chart
from ctrlruntime.project.helm.conditions import Switches
from ctrlruntime.project.helm.merging import Choice, Sometimes, merge
from ctrlruntime.project.kustomize import render
from ctrlruntime.project.settings import Features, Resource, Settings

HELM = shutil.which("helm")

OPERATOR = """
    import ctrlruntime as ctrl
    from ctrlruntime.api import apps


    class Cart(ctrl.Object, group="webapp.x.io", version="v1"):
        \"\"\"A cart. {{ .Values.nothing }} is prose here, and shop-system too.\"\"\"

        size: int = 1


    @ctrl.rbac(groups="webapp.x.io", resources="carts", verbs="get;list;watch")
    class Reconciler:
        async def reconcile(self, request: ctrl.Request) -> None: ...


    class Defaulter:
        async def default(self, cart: Cart) -> None: ...

        async def validate_create(self, cart: Cart) -> None: ...

        async def validate_update(self, old: Cart, new: Cart) -> None: ...

        async def validate_delete(self, cart: Cart) -> None: ...


    def setup(mgr: ctrl.Manager) -> None:
        ctrl.new_controller_managed_by(mgr).for_(Cart).owns(apps.Deployment).complete(Reconciler())
        if WEBHOOKS:
            ctrl.new_webhook_managed_by(mgr).for_(Cart).with_defaulter(Defaulter()).with_validator(Defaulter()).complete()
"""

CONVERTED = """
    import ctrlruntime as ctrl


    class Cart(ctrl.Object, group="webapp.x.io", version="v1", storage=True):
        size: int = 1


    class CartV2(ctrl.Object, group="webapp.x.io", version="v2", kind="Cart"):
        count: int = 1


    def setup(mgr: ctrl.Manager) -> None:
        mgr.webhook_server.register_conversion(
            ctrl.webhook.Conversion(Cart).spoke(CartV2, to_hub=lambda found: Cart(), from_hub=lambda found: CartV2())
        )
"""


@pytest.fixture
def project(package, tmp_path):
    """Makes a project of a module's text, and returns its folder and its settings."""

    def make(text: str = OPERATOR.replace("WEBHOOKS", "True"), **changes) -> tuple[Path, Settings]:
        name = package(operator=textwrap.dedent(text))
        resource = Resource(group="webapp.x.io", version="v1", kind="Cart", plural="carts", controller=True)
        settings = Settings(
            project_name="shop",
            package=name,
            domain="x.io",
            image="ghcr.io:443/me/shop:v1",
            resources=(resource,),
            **changes,
        )
        refresh(tmp_path, settings).apply()
        return tmp_path, settings

    return make


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def silent(_text: str) -> None:
    return


# What can be said without Helm


def paths_of(values, prefix=""):
    yield prefix
    if isinstance(values, dict):
        for key, value in values.items():
            yield from paths_of(value, f"{prefix}.{key}")


@pytest.mark.parametrize(
    "text", [OPERATOR.replace("WEBHOOKS", "True"), OPERATOR.replace("WEBHOOKS", "False"), CONVERTED]
)
def test_templates_read_values_that_there_are_and_close_what_they_open(project, text):
    folder, settings = project(text)
    files = chart_files(folder, settings, warn=silent)

    known = set(paths_of(yaml.safe_load(files["values.yaml"]), ".Values"))
    for name, template in files.items():
        if not name.startswith("templates/"):
            continue
        expressions = re.findall(r"{{[^}]*}}", template.replace('{{ "{{" }}', ""))
        read = set(re.findall(r"\.Values[.\w]+", " ".join(expressions)))
        assert read <= known, name
        opened = re.findall(r"{{-? *(?:if|with|range|define)\b", template)
        closed = re.findall(r"{{-? *end\b", template)
        assert len(opened) == len(closed), name
        assert "zzBlock" not in template
        assert "zzInline" not in template


def test_the_chart_has_a_folder_for_each_part(project):
    folder, settings = project()
    files = chart_files(folder, settings, warn=silent)

    folders = {name.split("/")[1] for name in files if name.count("/") == 2}
    assert folders == {
        "cert-manager", "crd", "manager", "metrics", "network-policy", "prometheus", "rbac", "webhook",
    }  # fmt: skip
    assert {"Chart.yaml", "values.yaml", ".helmignore", "templates/NOTES.txt", "templates/_helpers.tpl"} < set(files)


def test_values_are_those_of_the_project(project):
    folder, settings = project(features=Features(prometheus=True, cert_manager=False, metrics=False))
    manager = folder / "config/manager/manager.yaml"
    text = manager.read_text().replace("replicas: 1", "replicas: 2").replace("- --leader-elect\n", "- --mine=1\n")
    text = text.replace(
        "        env:\n", "        env:\n        - name: MINE\n          value: {{a}}\n".replace("{{a}}", '"{{a}}"')
    )
    manager.write_text(text)

    values = yaml.safe_load(chart_files(folder, settings, warn=silent)["values.yaml"])

    assert (values["prometheus"], values["certManager"], values["networkPolicy"]) == (
        {"enabled": True}, {"enabled": False}, {"enabled": True},
    )  # fmt: skip
    assert values["metrics"] == {"enabled": False, "port": 8443, "secure": True}
    assert values["manager"]["replicas"] == 2
    assert values["manager"]["args"] == ["--mine=1", "--debug-bind-address=127.0.0.1:8082"]
    assert values["manager"]["env"] == [{"name": "MINE", "value": "{{a}}"}]
    assert values["manager"]["image"] == {
        "repository": "ghcr.io:443/me/shop", "tag": "v1", "digest": "", "pullPolicy": "",
    }  # fmt: skip
    assert values["manager"]["resources"]["limits"]["memory"] == "256Mi"


SHARDED = OPERATOR.replace("WEBHOOKS", "True").replace(
    ".complete(Reconciler", ".with_options(sharded=True).complete(Reconciler"
)


def test_the_chart_of_a_sharded_operator_has_its_replicas_and_budget(project):
    folder, settings = project(SHARDED, sharding=True, replicas=5)

    files = chart_files(folder, settings, warn=silent)
    values = yaml.safe_load(files["values.yaml"])["manager"]
    template = files["templates/manager/manager.yaml"]

    assert (values["replicas"], values["strategy"]["rollingUpdate"]["maxUnavailable"]) == (5, 0)
    assert values["topologySpreadConstraints"][0]["topologyKey"] == "kubernetes.io/hostname"
    assert values["env"] == []
    assert "fieldPath: metadata.name\n" in template
    assert "terminationGracePeriodSeconds: 45\n" in template
    assert "maxUnavailable: 1\n" in files["templates/sharding/controller-manager.yaml"]


def test_without_webhooks_there_are_no_values_for_them(project):
    folder, settings = project(OPERATOR.replace("WEBHOOKS", "False"))

    values = yaml.safe_load(chart_files(folder, settings, warn=silent)["values.yaml"])

    assert not {"webhook", "certManager"} & set(values)


def test_webhooks_that_convert_cannot_be_switched_off(project):
    folder, settings = project(CONVERTED)

    values = yaml.safe_load(chart_files(folder, settings, warn=silent)["values.yaml"])

    assert values["webhook"] == {"port": 9443}


def test_the_projects_files_are_only_read(project):
    folder, settings = project()
    before = {path: path.read_bytes() for path in folder.rglob("*.yaml")}

    chart_files(folder, settings, warn=silent)

    assert {path: path.read_bytes() for path in folder.rglob("*.yaml")} == before


def test_a_deployment_without_containers_is_one_line(project):
    folder, settings = project()
    manager = folder / "config/manager/manager.yaml"
    manager.write_text(re.sub(r"      containers:\n.*?(?=      volumes:)", "", manager.read_text(), flags=re.DOTALL))
    for name, text in derived_files(settings, made_by(folder, settings)).items():
        (folder / "config" / name).write_text(text)

    with pytest.raises(ConfigError, match="has no container"):
        chart_files(folder, replace(settings, features=Features(metrics=False)), warn=silent)


# What Helm makes of it

helm = pytest.mark.skipif(HELM is None, reason="needs helm on PATH")
_OURS = {"app.kubernetes.io/managed-by", "app.kubernetes.io/instance", "helm.sh/chart", "helm.sh/resource-policy"}


def rendered(folder: Path, *flags: str, release: str = "shop", namespace: str = "shop-system"):
    done = subprocess.run(
        [HELM, "template", release, str(folder / "dist"), "--namespace", namespace, *flags],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return by_key(each for each in yaml.safe_load_all(done.stdout) if each)


def by_key(objects):
    return {(each["kind"], each["metadata"]["name"]): plain(each) for each in objects if each["kind"] != "Namespace"}


def plain(node):
    """An object without the labels that differ in charts, and with named things and flags in the order of their names."""
    if isinstance(node, dict):
        found = {key: sorted(value) if key == "args" else plain(value) for key, value in node.items()}
        for key in ("labels", "annotations"):
            if isinstance(found.get(key), dict):
                found[key] = {name: value for name, value in found[key].items() if name not in _OURS}
                if not found[key]:
                    del found[key]
        return found
    if isinstance(node, list):
        items = [plain(each) for each in node]
        named = all(isinstance(each, dict) and ("name" in each or "mountPath" in each) for each in items)
        return sorted(items, key=lambda each: each.get("mountPath") or each["name"]) if named else items
    return node


def flag(settings: Settings) -> list[str]:
    features = settings.features
    values = {
        "metrics.enabled": features.metrics,
        "certManager.enabled": features.cert_manager,
        "prometheus.enabled": features.prometheus,
        "networkPolicy.enabled": features.network_policy,
        "rbac.namespaced": settings.namespaced,
    }
    return ["--set", ",".join(f"{name}={str(is_on).lower()}" for name, is_on in values.items())]


@helm
@pytest.mark.parametrize(
    ("text", "is_sharded"),
    [
        (OPERATOR.replace("WEBHOOKS", "True"), False),
        (OPERATOR.replace("WEBHOOKS", "False"), False),
        (CONVERTED, False),
        (SHARDED, True),
    ],
)
def test_with_default_values_helm_gives_the_objects_of_config_default(project, text, is_sharded):
    folder, settings = project(text, features=Features(network_policy=True), sharding=is_sharded)
    written(folder / "dist", chart_files(folder, settings, warn=silent))

    assert rendered(folder) == by_key(render(folder / "config/default"))


@helm
@pytest.mark.parametrize(
    ("features", "namespaced"),
    [
        (Features(prometheus=True, network_policy=True), False),
        (Features(prometheus=True, cert_manager=False), True),
        (Features(metrics=False, prometheus=True, network_policy=True), True),
        (Features(metrics=False, cert_manager=False), False),
    ],
)
def test_switches_in_values_are_the_switches_of_the_project(project, features, namespaced):
    folder, settings = project()
    written(folder / "dist", chart_files(folder, settings, warn=silent))

    other = replace(settings, features=features, namespaced=namespaced)
    refresh(folder, other).apply()

    assert rendered(folder, *flag(other)) == by_key(render(folder / "config/default"))


@helm
def test_a_release_of_another_name_in_another_namespace_refers_to_its_own_objects(project):
    folder, settings = project(features=Features(prometheus=True))
    written(folder / "dist", chart_files(folder, settings, warn=silent))

    mine = rendered(
        folder,
        release="eu-1",
        namespace="123",
    )

    assert ("Deployment", "eu-1-shop-controller-manager") in mine
    binding = mine["ClusterRoleBinding", "eu-1-shop-manager-rolebinding"]
    assert binding["roleRef"]["name"] == "eu-1-shop-manager-role"
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": "eu-1-shop-controller-manager", "namespace": "123"}
    ]
    hosts = mine["Certificate", "eu-1-shop-serving-cert"]["spec"]["dnsNames"]
    assert hosts[0] == "eu-1-shop-webhook-service.123.svc"
    annotations = mine["MutatingWebhookConfiguration", "eu-1-shop-mutating-webhook-configuration"]["metadata"][
        "annotations"
    ]
    assert annotations == {"cert-manager.io/inject-ca-from": "123/eu-1-shop-serving-cert"}
    definition = str(mine["CustomResourceDefinition", "carts.webapp.x.io"])
    assert "{{ .Values.nothing }} is prose here, and shop-system too." in definition


@helm
def test_values_change_the_deployment(project, tmp_path):
    folder, settings = project()
    written(folder / "dist", chart_files(folder, settings, warn=silent))
    values = {
        "fullnameOverride": "mine",
        "manager": {
            "replicas": 3,
            "image": {"digest": "sha256:00", "pullPolicy": "Always"},
            "args": ["--zap-devel"],
            "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
            "envOverrides": {"B": "3"},
            "healthProbe": {"port": 8082},
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"operator": "Exists"}],
            "priorityClassName": "high",
            "labels": {"a": "b"},
            "pod": {"labels": {"c": "d"}, "annotations": {"e": "f"}},
            "resources": None,
        },
        "serviceAccount": {"enabled": False, "name": "theirs"},
        "metrics": {"port": 9000, "secure": False},
        "webhook": {"port": 9999},
        "crd": {"enabled": False},
        "rbac": {"helpers": {"enabled": False}},
    }
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(values))

    mine = rendered(folder, "--values", str(tmp_path / "mine.yaml"))

    kinds = {kind for kind, _ in mine}
    assert not {"CustomResourceDefinition", "ServiceAccount"} & kinds
    assert not [name for _, name in mine if name.endswith(("-admin-role", "-editor-role", "-viewer-role"))]
    deployment = mine["Deployment", "mine-controller-manager"]
    assert (deployment["spec"]["replicas"], deployment["metadata"]["labels"]["a"]) == (3, "b")
    template = deployment["spec"]["template"]
    assert (template["metadata"]["labels"]["c"], template["metadata"]["annotations"]["e"]) == ("d", "f")
    pod = template["spec"]
    assert (pod["serviceAccountName"], pod["nodeSelector"], pod["tolerations"], pod["priorityClassName"]) == (
        "theirs", {"disk": "ssd"}, [{"operator": "Exists"}], "high",
    )  # fmt: skip
    [container] = pod["containers"]
    assert (container["image"], container["imagePullPolicy"]) == ("ghcr.io:443/me/shop@sha256:00", "Always")
    assert "resources" not in container
    assert {"--zap-devel", "--health-probe-bind-address=:8082", "--webhook-port=9999"} <= set(container["args"])
    assert not [each for each in container["args"] if each.startswith(("--metrics-secure", "--metrics-cert-path"))]
    variables = {each["name"]: each.get("value") for each in container["env"]}
    assert (variables["A"], variables["B"], variables["METRICS_BIND_ADDRESS"]) == ("1", "3", ":9000")
    assert {each["name"]: each["containerPort"] for each in container["ports"]} == {
        "health": 8082, "metrics": 9000, "webhook-server": 9999,
    }  # fmt: skip
    [port] = mine["Service", "mine-controller-manager-metrics-service"]["spec"]["ports"]
    assert (port["name"], port["port"], port["targetPort"]) == ("http", 9000, 9000)
    [port] = mine["Service", "mine-webhook-service"]["spec"]["ports"]
    assert (port["port"], port["targetPort"]) == (443, 9999)
    subjects = mine["ClusterRoleBinding", "mine-manager-rolebinding"]["subjects"]
    assert [each["name"] for each in subjects] == ["theirs"]


@helm
def test_webhooks_switched_off_leave_nothing_of_them(project):
    folder, settings = project()
    written(folder / "dist", chart_files(folder, settings, warn=silent))

    mine = rendered(folder, "--set", "webhook.enabled=false")

    assert not {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "Certificate", "Issuer"} & {
        kind for kind, _ in mine
    }
    assert ("Service", "shop-webhook-service") not in mine
    [container] = mine["Deployment", "shop-controller-manager"]["spec"]["template"]["spec"]["containers"]
    assert {"name": "ENABLE_WEBHOOKS", "value": "false"} in container["env"]


@helm
def test_helm_finds_nothing_wrong(project):
    folder, settings = project()
    written(folder / "dist", chart_files(folder, settings, warn=silent))

    linted = subprocess.run(
        [HELM, "lint", "--strict", str(folder / "dist")], capture_output=True, text=True, check=False
    )

    assert linted.returncode == 0, linted.stdout


@helm
def test_long_names_are_cut_before_what_tells_them_apart(project):
    folder, settings = project()
    written(folder / "dist", chart_files(folder, settings, warn=silent))

    mine = rendered(folder, "--set", "fullnameOverride=" + "x" * 60)

    names = [name for kind, name in mine if kind != "CustomResourceDefinition"]
    assert all(len(name) <= 63 for name in names)
    assert len(set(mine)) == len(rendered(folder))


# Conditions and merging

SWITCHES = Switches({"a": ".a", "b": ".b"})
BOTH, A, B, NONE = (True, True), (True, False), (False, True), (False, False)


@pytest.mark.parametrize(
    ("wanted", "among", "condition"),
    [
        ({BOTH, A, B, NONE}, None, ""),
        ({BOTH, A}, None, ".a"),
        ({B, NONE}, None, "not .a"),
        ({BOTH}, None, "and .a .b"),
        ({A}, None, "and .a (not .b)"),
        ({BOTH, A, B}, None, "or .a .b"),
        ({BOTH, NONE}, None, "or (and .a .b) (and (not .a) (not .b))"),
        ({A}, {A, BOTH}, "not .b"),
        ({A}, {A, B}, ".a"),
    ],
)
def test_a_condition_is_the_shortest_that_tells_the_cases(wanted, among, condition):
    every = frozenset(SWITCHES.cases)

    assert SWITCHES.condition(frozenset(wanted), every if among is None else frozenset(among)) == condition


def test_what_forms_share_stands_once():
    merged = merge(
        {
            A: {"kind": "X", "env": [{"name": "a", "value": 1}, {"name": "b"}], "only": 1},
            B: {"kind": "X", "env": [{"name": "b"}, {"name": "a", "value": 2}]},
        }
    )

    choice = Choice(((frozenset({A}), 1), (frozenset({B}), 2)))
    assert merged == {
        "kind": "X",
        "env": [{"name": "a", "value": choice}, {"name": "b"}],
        "only": Sometimes(frozenset({A}), 1),
    }


def test_lists_without_names_are_taken_as_a_whole():
    merged = merge({A: ["x"], B: ["x", "y"]})

    assert merged == Choice(((frozenset({A}), ["x"]), (frozenset({B}), ["x", "y"])))


# Whose files they are


def updated(chart: Path, files: dict[str, str], **options) -> tuple[list[str], list[str]]:
    """What `ctrl helm` does with a chart of these files, and its warnings."""
    warnings: list[str] = []
    found = refresh_chart(chart, files, warn=warnings.append, **options)
    found.apply()
    return [line.replace(f"{chart}/", "") for line in found.lines()], [w.replace(f"{chart}/", "") for w in warnings]


_CHART: dict[str, str] = {}  # made once: it takes half a second


@pytest.fixture
def chart(project, tmp_path):
    if not _CHART:
        _CHART.update(chart_files(*project(), warn=silent))
    files = dict(_CHART)
    updated(tmp_path / "dist", files)
    return tmp_path / "dist", files


def test_templates_are_generated_and_other_files_are_written_once(chart):
    folder, files = chart

    marked = {name for name, text in files.items() if text.startswith("{{- /* Written by `ctrl helm`: ")}
    assert set(files) - marked == {"Chart.yaml", "values.yaml", ".helmignore"}
    assert updated(folder, files) == ([], [])

    for name in ("Chart.yaml", ".helmignore", "templates/mine.yaml"):
        (folder / name).write_text("mine: true\n")
    fewer = {name: text for name, text in files.items() if name != "templates/manager/manager.yaml"}
    assert updated(folder, fewer, force=True) == (["removed templates/manager/manager.yaml"], [])
    assert updated(folder, files) == (["created templates/manager/manager.yaml"], [])
    for name in ("Chart.yaml", ".helmignore", "templates/mine.yaml"):
        assert (folder / name).read_text() == "mine: true\n"


def test_a_template_without_its_first_line_is_kept_until_it_is_forced(chart):
    folder, files = chart
    edited = folder / "templates/_helpers.tpl"
    edited.write_text("mine\n")

    lines, (warning,) = updated(folder, files)

    assert (lines, edited.read_text()) == ([], "mine\n")
    assert warning == (
        "templates/_helpers.tpl: not changed, because its first line does not say that it is generated. "
        "Delete it to get the generated one, or use --force"
    )
    assert updated(folder, files, force=True) == (["changed templates/_helpers.tpl"], [])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda values: values["manager"].update(mine=1), ""),
        (lambda values: values["manager"].update(replicas=3), "the project has other values for manager.replicas"),
        (lambda values: values["manager"]["image"].update(tag="v0"), "the project has other values for manager.image"),
        (lambda values: values.pop("webhook"), "the templates require webhook.enabled, webhook.port"),
        (
            lambda values: values.update(metrics=7, nameOverride="x"),
            "the templates require metrics.enabled, metrics.port, metrics.secure, and the project has other values for nameOverride",
        ),
    ],
)
@pytest.mark.parametrize("force", [False, True])
def test_values_of_the_user_stay_and_what_they_lack_is_named(chart, change, said, force):
    folder, files = chart
    values = yaml.safe_load((folder / "values.yaml").read_text())
    change(values)
    (folder / "values.yaml").write_text(yaml.safe_dump(values))

    done = updated(folder, files, force=force)

    advice = "Edit it, or delete it to get the generated one"
    assert done == ([], [f"values.yaml: not changed, but {said}. {advice}"] if said else [])
    assert yaml.safe_load((folder / "values.yaml").read_text()) == values


@pytest.mark.parametrize(("content", "said"), [(b"a: [\n", "values.yaml, line 2: "), (b"\xff", "it is not UTF-8 text")])
def test_values_that_cannot_be_read_are_one_line(chart, content, said):
    folder, files = chart
    (folder / "values.yaml").write_bytes(content)

    with pytest.raises(ConfigError, match=said):
        updated(folder, files)


def test_files_of_config_that_the_user_keeps_are_in_the_chart(project):
    folder, settings = project()
    role = folder / "config/rbac/role.yaml"
    role.write_text(role.read_text().partition("\n")[2].replace("carts", "mine"))

    template = chart_files(folder, settings, warn=silent)["templates/rbac/manager-role.yaml"]

    assert "- mine\n" in template
    assert "- carts\n" not in template
