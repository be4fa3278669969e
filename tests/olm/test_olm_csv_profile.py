"""The profile of the Operator Lifecycle Manager: certificates of others go, and what named them."""

from __future__ import annotations

import itertools

import pytest
from csv_objects import (
    FOLDER,
    account,
    binding,
    certificate,
    configuration,
    container,
    definition,
    deployment,
    role,
    rule,
    service,
    thing,
    variables,
    webhook,
)

from ctrlruntime.olm.csv.objects import Objects, pod_of, told
from ctrlruntime.olm.csv.profile import Certificates, profile, without_strangers

NAME = "shop-controller-manager"
METRICS = "/tmp/k8s-metrics-server/metrics-certs"


def profiled(*documents, serving=(NAME,)) -> Objects:
    objects = Objects(documents)
    profile(objects, Certificates.of(objects), serving)
    return objects


def secret(name: str, secret_name: str):
    return {"name": name, "secret": {"secretName": secret_name}}


def mount(name: str, path: str):
    return {"name": name, "mountPath": path, "readOnly": True}


def pod(objects: Objects):
    return pod_of(objects.deployments[0])


TREE = [
    configuration(webhook()),
    service(),
    certificate("webhook-server-cert"),
    certificate("metrics-server-cert", "shop-metrics-service"),
    thing("cert-manager.io/v1", "Issuer", "shop-selfsigned-issuer"),
]
VOLUMES = [
    secret("certs", "webhook-server-cert"),
    secret("metrics", "metrics-server-cert"),
    {"name": "tmp", "emptyDir": {}},
]
MOUNTS = [mount("certs", FOLDER), mount("metrics", METRICS), mount("tmp", "/tmp")]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_volumes_of_certificates_go_by_name_wherever_they_stand(order):
    manager = container(volumeMounts=[MOUNTS[at] for at in order])

    objects = profiled(*TREE, deployment(manager, volumes=[VOLUMES[at] for at in reversed(order)]))

    assert pod(objects)["volumes"] == [{"name": "tmp", "emptyDir": {}}]
    assert pod(objects)["containers"][0]["volumeMounts"] == [mount("tmp", "/tmp")]
    assert [told(each) for each in objects.documents] == [
        "MutatingWebhookConfiguration/shop-mutatingwebhookconfiguration",
        "Service/shop-webhook-service",
        f"Deployment/{NAME}",
    ]


def test_lists_that_are_empty_then_are_gone():
    manager = container(volumeMounts=MOUNTS[:1])

    objects = profiled(
        *TREE, deployment(manager, volumes=VOLUMES[:1], initContainers=[container("first", volumeMounts=MOUNTS[1:2])])
    )

    assert "volumes" not in pod(objects)
    assert "volumeMounts" not in pod(objects)["containers"][0]
    assert pod(objects)["initContainers"] == [container("first", volumeMounts=MOUNTS[1:2])]  # its volume is another


def test_what_names_a_folder_that_is_gone_becomes_empty_and_the_given_folder_stays():
    manager = container(
        args=[
            "--leader-elect",
            f"--metrics-cert-path={METRICS}",
            f"--webhook-cert-path={FOLDER}",
            METRICS,
            f"--cert={METRICS}/tls.crt",
            f"{METRICS}-others",
        ],
        command=["operator", f"--metrics-cert-path={METRICS}"],
        env=[
            *variables(METRICS_CERT_PATH=METRICS, WEBHOOK_CERT_PATH=FOLDER, OTHER="/tmp"),
            {"name": "POD", "valueFrom": {}},
        ],
        volumeMounts=MOUNTS,
    )

    found = pod(profiled(*TREE, deployment(manager, volumes=VOLUMES)))["containers"][0]

    assert found["args"] == [
        "--leader-elect",
        "--metrics-cert-path=",
        f"--webhook-cert-path={FOLDER}",
        "",
        "--cert=",
        f"{METRICS}-others",
    ]
    assert found["command"] == ["operator", "--metrics-cert-path="]
    assert found["env"] == [
        *variables(METRICS_CERT_PATH="", WEBHOOK_CERT_PATH=FOLDER, OTHER="/tmp"),
        {"name": "POD", "valueFrom": {}},
    ]


def test_webhooks_of_another_folder_are_served_from_the_given_one():
    manager = container(
        env=variables(WEBHOOK_CERT_PATH="/certs/"),
        args=["--cert=/certs/tls.crt"],
        volumeMounts=[mount("certs", "/certs")],
    )

    found = pod(profiled(*TREE, deployment(manager, volumes=VOLUMES)))["containers"][0]

    assert found["env"] == variables(WEBHOOK_CERT_PATH=f"{FOLDER}/")
    assert found["args"] == [f"--cert={FOLDER}/tls.crt"]


def test_a_deployment_that_answers_nobody_is_given_no_folder():
    manager = container(env=variables(WEBHOOK_CERT_PATH=FOLDER), volumeMounts=MOUNTS)

    found = pod(profiled(*TREE, deployment(manager, volumes=VOLUMES), serving=()))["containers"][0]

    assert found["env"] == variables(WEBHOOK_CERT_PATH="")


def test_certificates_of_a_conversion_alone_are_known_too():
    manager = container(env=variables(CERTS="/certs"), volumeMounts=[mount("certs", "/certs")])

    objects = profiled(
        definition("Cart", "v1", "v2", path="/convert"),
        certificate("webhook-server-cert"),
        deployment(manager, volumes=VOLUMES),
    )

    assert pod(objects)["containers"][0]["env"] == variables(CERTS=FOLDER)


def test_a_projected_secret_goes_too():
    volume = {"name": "certs", "projected": {"sources": [{"secret": {"name": "webhook-server-cert"}}]}}

    objects = profiled(*TREE, deployment(container(volumeMounts=MOUNTS[:1]), volumes=[volume]))

    assert "volumes" not in pod(objects)


def test_a_secret_nobody_makes_a_certificate_for_stays():
    volumes = [secret("certs", "a-persons")]

    objects = profiled(*TREE, deployment(container(volumeMounts=MOUNTS[:1]), volumes=volumes))

    assert pod(objects)["volumes"] == volumes
    assert pod(objects)["containers"][0]["volumeMounts"] == MOUNTS[:1]


def test_a_certificate_the_operator_keeps_itself_is_given_to_it():
    own = container(
        env=[
            *variables(
                WEBHOOK_SECRET="webhook-server-cert",
                WEBHOOK_SERVICE="s",
                WEBHOOK_MUTATING="m",
                WEBHOOK_VALIDATING="v",
                WEBHOOK_DEFINITIONS="d",
                METRICS_BIND_ADDRESS=":8443",
                WEBHOOK_CERT_PATH="",
            ),
        ]
    )

    objects = profiled(
        deployment(own, container("other")),
        account(),
        role("shop-webhook-certificate-role", rule("secrets")),
        binding("shop-webhook-certificate-role"),
        role("shop-webhook-certificate-role", rule("nodes"), kind="ClusterRole"),
        binding("shop-webhook-certificate-role", kind="ClusterRoleBinding"),
        role("shop-manager-role", rule("nodes"), kind="ClusterRole"),
    )

    manager, other = pod(objects)["containers"]
    assert manager["env"] == variables(METRICS_BIND_ADDRESS=":8443", WEBHOOK_CERT_PATH=FOLDER)
    assert other == container("other")
    assert [told(each) for each in objects.documents] == [
        f"Deployment/{NAME}",
        f"ServiceAccount/{NAME}",
        "ClusterRole/shop-manager-role",
    ]


def test_a_monitor_without_the_secret_trusts_any_certificate():
    tls = {
        "ca": {"secret": {"name": "metrics-server-cert", "key": "ca.crt"}},
        "cert": {"secret": {"name": "metrics-server-cert", "key": "tls.crt"}},
        "keySecret": {"name": "metrics-server-cert", "key": "tls.key"},
        "insecureSkipVerify": False,
        "serverName": "shop-metrics.shop-system.svc",
        "minVersion": "TLS12",
    }
    others = {"ca": {"secret": {"name": "a-persons", "key": "ca.crt"}}}
    endpoints = [{"port": "https", "tlsConfig": tls}, {"port": "more", "tlsConfig": others}, {"port": "plain"}]
    monitor = thing("monitoring.coreos.com/v1", "ServiceMonitor", "shop-monitor", spec={"endpoints": endpoints})

    objects = profiled(*TREE, monitor)

    (found,) = objects.of("monitoring.coreos.com")
    assert found["spec"]["endpoints"] == [
        {"port": "https", "tlsConfig": {"insecureSkipVerify": True, "minVersion": "TLS12"}},
        {"port": "more", "tlsConfig": others},
        {"port": "plain"},
    ]


@pytest.mark.parametrize(
    ("annotations", "kept"),
    [
        ({"cert-manager.io/inject-ca-from": "a/b"}, None),
        (
            {"cert-manager.io/inject-ca-from": "a/b", "controller-gen.kubebuilder.io/version": "v0.1"},
            {"controller-gen.kubebuilder.io/version": "v0.1"},
        ),
        ({"other": "x"}, {"other": "x"}),
    ],
)
def test_nobody_injects_a_ca(annotations, kept):
    injected = definition()
    injected["metadata"]["annotations"] = annotations

    objects = profiled(injected)

    assert objects.documents[0]["metadata"].get("annotations") == kept


def test_what_is_written_apart_and_namespaces_leave():
    objects = Objects(
        [
            thing("v1", "Namespace", "shop-system", ""),
            thing("scorecard.operatorframework.io/v1alpha3", "Configuration", "config"),
            thing("operators.coreos.com/v1alpha1", "ClusterServiceVersion", "shop.v0.0.0"),
            thing("v1", "ConfigMap", "stays"),
        ]
    )

    without_strangers(objects)

    assert [told(each) for each in objects.documents] == ["ConfigMap/stays"]
