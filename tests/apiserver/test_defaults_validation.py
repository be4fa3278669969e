import copy

import pytest
from controllers_cluster import cluster, deployment, pod

from ctrlruntime.errors import Invalid


@pytest.fixture
async def api():
    async with cluster(()) as running:
        yield running.api


def causes(error):
    return [f"{cause.field}: {cause.message}" for cause in error.causes]


async def refused(api, group, resource, document, namespace="default"):
    document["metadata"].pop("namespace", None)
    with pytest.raises(Invalid) as caught:
        await api.create(group, resource, namespace, document)
    return causes(caught.value)


def meta(**document):
    return {"metadata": {"name": "x"}, **document}


def with_container(**fields):
    document = pod("x")
    document["spec"]["containers"][0].update(fields)
    return document


LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric "
    "character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (pod("x", containers=[]), ["spec.containers: Required value"]),
        (with_container(name=""), ["spec.containers[0].name: Required value"]),
        (with_container(name="Bad"), [f'spec.containers[0].name: Invalid value: "Bad": {LABEL}']),
        (with_container(image=""), ["spec.containers[0].image: Required value"]),
        (
            with_container(imagePullPolicy="Maybe"),
            [
                'spec.containers[0].imagePullPolicy: Unsupported value: "Maybe": supported values: "Always", "IfNotPresent", "Never"'
            ],
        ),
        (
            with_container(ports=[{"containerPort": 70000}]),
            ["spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive"],
        ),
        (with_container(ports=[{}]), ["spec.containers[0].ports[0].containerPort: Required value"]),
        (
            with_container(ports=[{"name": "a", "containerPort": 1}, {"name": "a", "containerPort": 2}]),
            ['spec.containers[0].ports[1].name: Duplicate value: "a"'],
        ),
        (
            with_container(volumeMounts=[{"name": "v", "mountPath": "/v"}]),
            ['spec.containers[0].volumeMounts[0].name: Not found: "v"'],
        ),
        (
            with_container(resources={"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}),
            ['spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1'],
        ),
        (
            pod("x", containers=[{"name": "c", "image": "i"}, {"name": "c", "image": "i"}]),
            ['spec.containers[1].name: Duplicate value: "c"'],
        ),
        (
            pod("x", restartPolicy="Sometimes"),
            ['spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"'],
        ),
    ],
)
async def test_pods(api, document, expected):
    assert await refused(api, "", "pods", document) == expected


def changed(**spec):
    document = deployment()
    document["spec"].update(spec)
    return document


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (
            changed(selector=None),
            [
                "spec.selector: Required value",
                'spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`',
            ],
        ),
        (changed(selector={}), ["spec.selector: Invalid value: {}: empty selector is invalid for deployment"]),
        (
            changed(selector={"matchLabels": {"a": "b"}}),
            [
                'spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`'
            ],
        ),
        (changed(replicas=-1), ["spec.replicas: Invalid value: -1: must be greater than or equal to 0"]),
        (
            changed(strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}),
            ["spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0"],
        ),
        (
            changed(strategy={"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}),
            ["spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"],
        ),
    ],
)
async def test_deployments(api, document, expected):
    assert await refused(api, "apps", "deployments", document) == expected


async def test_selector_of_a_workload_does_not_change(api):
    stored = await api.create("apps", "deployments", "default", deployment())
    stored["spec"]["selector"]["matchLabels"]["more"] = "x"
    stored["spec"]["template"]["metadata"]["labels"]["more"] = "x"

    with pytest.raises(Invalid) as caught:
        await api.update("apps", "deployments", stored)

    assert causes(caught.value) == [
        'spec.selector: Invalid value: {"matchLabels":{"app":"web","more":"x"}}: field is immutable'
    ]
    assert str(caught.value).startswith('Deployment.apps "web" is invalid: spec.selector: Invalid value')


async def test_pod_spec_changes_only_in_image_and_added_tolerations(api):
    stored = await api.create("", "pods", "default", pod())

    allowed = copy.deepcopy(stored)
    allowed["spec"]["containers"][0]["image"] = "web:2"
    allowed["spec"]["tolerations"].append({"key": "k", "operator": "Exists"})
    allowed = await api.update("", "pods", allowed)

    fixed = "pod updates may not change fields other than"
    for name, value, text in (
        ("hostname", "other", fixed),
        ("tolerations", [], "existing toleration can not be modified except its tolerationSeconds"),
        ("containers", [{"name": "d", "image": "i"}], fixed),
    ):
        with pytest.raises(Invalid, match=text):
            await api.update("", "pods", {**allowed, "spec": {**allowed["spec"], name: value}})


CONTAINER = {"containers": [{"name": "c", "image": "i"}]}
TLS = {"type": "kubernetes.io/tls"}


@pytest.mark.parametrize(
    ("group", "resource", "document", "expected"),
    [
        ("", "services", meta(spec={}), ["spec.ports: Required value"]),
        (
            "",
            "services",
            meta(spec={"ports": [{"port": 0}, {"port": 80, "name": "a"}]}),
            [
                "spec.ports[0].name: Required value",
                "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
                "spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive",
            ],
        ),
        (
            "",
            "services",
            meta(spec={"type": "Other", "ports": [{"port": 1}]}),
            [
                'spec.type: Unsupported value: "Other": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"'
            ],
        ),
        (
            "",
            "services",
            meta(spec={"ports": [{"port": 1, "nodePort": 30000}]}),
            ["spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"],
        ),
        ("", "services", meta(spec={"type": "ExternalName"}), ["spec.externalName: Required value"]),
        ("", "secrets", meta(**TLS, data={}), ["data[tls.crt]: Required value", "data[tls.key]: Required value"]),
        (
            "",
            "persistentvolumeclaims",
            meta(spec={}),
            [
                "spec.accessModes: Required value: at least 1 access mode is required",
                "spec.resources[storage]: Required value",
            ],
        ),
        (
            "batch",
            "jobs",
            meta(spec={"template": {"spec": CONTAINER}}),
            ['spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'],
        ),
        (
            "batch",
            "cronjobs",
            meta(
                spec={
                    "schedule": "bad",
                    "jobTemplate": {"spec": {"template": {"spec": {**CONTAINER, "restartPolicy": "Never"}}}},
                }
            ),
            ['spec.schedule: Invalid value: "bad": expected exactly 5 fields, found 1: [bad]'],
        ),
        (
            "coordination.k8s.io",
            "leases",
            meta(spec={"leaseDurationSeconds": 0}),
            ["spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"],
        ),
        (
            "networking.k8s.io",
            "ingresses",
            meta(
                spec={
                    "rules": [
                        {
                            "host": "1.2.3.4",
                            "http": {
                                "paths": [{"path": "/", "backend": {"service": {"name": "s", "port": {"number": 1}}}}]
                            },
                        }
                    ]
                }
            ),
            [
                'spec.rules[0].host: Invalid value: "1.2.3.4": must be a DNS name, not an IP address',
                "spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified",
            ],
        ),
        (
            "rbac.authorization.k8s.io",
            "roles",
            meta(rules=[{"verbs": []}, {"verbs": ["get"], "nonResourceURLs": ["/x"]}]),
            [
                "rules[0].verbs: Required value: verbs must contain at least one value",
                "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
                "rules[0].resources: Required value: resource rules must supply at least one resource",
                'rules[1].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs',
            ],
        ),
        (
            "rbac.authorization.k8s.io",
            "rolebindings",
            meta(roleRef={"kind": "Role"}, subjects=[{"kind": "ServiceAccount", "name": "s"}]),
            ["roleRef.name: Required value"],
        ),
        (
            "policy",
            "poddisruptionbudgets",
            meta(spec={"minAvailable": 1, "maxUnavailable": 1}),
            [
                (
                    'spec: Invalid value: {"MinAvailable":1,"Selector":null,"MaxUnavailable":1,'
                    '"UnhealthyPodEvictionPolicy":null}: minAvailable and maxUnavailable cannot be both set'
                )
            ],
        ),
        (
            "",
            "events",
            meta(involvedObject={"namespace": "other"}),
            ['involvedObject.namespace: Invalid value: "other": does not match event.namespace'],
        ),
    ],
)
async def test_namespaced_kinds(api, group, resource, document, expected):
    assert await refused(api, group, resource, copy.deepcopy(document)) == expected


async def test_config_map_keys(api):
    [cause] = await refused(api, "", "configmaps", meta(data={"bad key": "", "good": ""}))

    assert cause.startswith('data[bad key]: Invalid value: "bad key": a valid config key must consist of alphanumeric')


async def test_webhook_configurations(api):
    found = await refused(
        api,
        "admissionregistration.k8s.io",
        "validatingwebhookconfigurations",
        meta(webhooks=[{"name": "short", "clientConfig": {}}]),
        namespace="",
    )

    assert found == [
        'webhooks[0].name: Invalid value: "short": should be a domain with at least three segments separated by dots',
        "webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun",
        "webhooks[0].clientConfig: Required value: exactly one of url or service is required",
        "webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1",
    ]


@pytest.mark.parametrize("resource", ["configmaps", "secrets"])
async def test_immutable_data_stays(api, resource):
    document = {"metadata": {"name": "x"}, "data": {"a": "YQ=="}, "immutable": True}
    stored = await api.create("", resource, "default", document)

    for change in ({"data": {"a": "Yg=="}}, {"immutable": None}):
        with pytest.raises(Invalid, match="field is immutable when `immutable` is set"):
            await api.merge_patch("", resource, "default", "x", change)
    stored["metadata"]["labels"] = {"a": "b"}
    await api.update("", resource, stored)


@pytest.mark.parametrize(
    ("group", "resource", "document", "patch", "text"),
    [
        ("", "secrets", meta(type="a/b"), {"type": "c/d"}, 'type: Invalid value: "c/d": field is immutable'),
        (
            "",
            "services",
            meta(spec={"ports": [{"port": 1}], "clusterIP": "10.0.0.7"}),
            {"spec": {"clusterIP": "10.0.0.8", "clusterIPs": ["10.0.0.8"]}},
            'spec.clusterIPs[0]: Invalid value: ["10.0.0.8"]: may not change once set',
        ),
        (
            "rbac.authorization.k8s.io",
            "rolebindings",
            meta(roleRef={"kind": "Role", "name": "a"}),
            {"roleRef": {"name": "b"}},
            "cannot change roleRef",
        ),
        (
            "batch",
            "jobs",
            meta(spec={"template": {"spec": {**CONTAINER, "restartPolicy": "Never"}}}),
            {"spec": {"template": {"spec": {"dnsPolicy": "Default"}}}},
            "field is immutable",
        ),
    ],
)
async def test_what_is_set_once_does_not_change(api, group, resource, document, patch, text):
    await api.create(group, resource, "default", copy.deepcopy(document))

    with pytest.raises(Invalid) as caught:
        await api.merge_patch(group, resource, "default", "x", patch)

    assert text in causes(caught.value)[0]


@pytest.mark.parametrize(
    ("schedule", "problem"),
    [
        ("*/5 * * * *", None),
        ("0 0 1,15 * mon-fri", None),
        ("@daily", None),
        ("@every 1h", None),
        ("@sometimes", "unrecognized descriptor: @sometimes"),
        ("x * * * *", 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'),
        ("61 * * * *", "end of range (61) above maximum (59): 61"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
    ],
)
async def test_schedules(api, schedule, problem):
    template = {"spec": {**CONTAINER, "restartPolicy": "Never"}}
    document = meta(spec={"schedule": schedule, "jobTemplate": {"spec": {"template": template}}})

    if problem is None:
        assert await api.create("batch", "cronjobs", "default", document)
    else:
        assert await refused(api, "batch", "cronjobs", document) == [
            f'spec.schedule: Invalid value: "{schedule}": {problem}'
        ]
