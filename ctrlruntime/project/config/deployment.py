"""The operator's Namespace and Deployment, which are a person's to change, and the patches that switches add to it.

A strategic merge patch replaces a list of plain values, arguments among them, and adds to a list of named things. So the arguments
are in the Deployment and refer to variables, and patches set the variables.
"""

from __future__ import annotations

from typing import Any, Final

from ctrlruntime.generate.options import Document
from ctrlruntime.generate.webhooks import MUTATING_NAME, VALIDATING_NAME
from ctrlruntime.project.config.layout import (
    ACCOUNT,
    CERTIFICATES_FOLDER,
    CONTAINER,
    CONTROL_PLANE,
    DEPLOYMENT,
    METRICS_FOLDER,
    METRICS_PORT,
    METRICS_SECRET,
    OWN_NAMESPACE,
    WEBHOOK_PORT,
    WEBHOOK_SECRET,
    WEBHOOK_SERVICE,
    Parts,
    selector,
)
from ctrlruntime.project.settings import Settings

__all__ = [
    "IMAGE",
    "VARIABLES",
    "manager_text",
    "metrics_patch",
    "namespaced_patch",
    "own_certificate_patch",
    "sharding_patch",
    "webhook_patch",
]

IMAGE: Final = "controller"
"""The name of the image in the Deployment; the settings say which it is."""

_GRACE_OF_A_REPLICA: Final = 45
"""Seconds: the manager's limit for ending what runs (30), and the time to give the objects away."""

VARIABLES: Final = frozenset(
    {
        "METRICS_BIND_ADDRESS",
        "METRICS_CERT_PATH",
        "POD_NAME",
        "POD_NAMESPACE",
        "WATCH_NAMESPACE",
        "WEBHOOK_CERT_PATH",
        "WEBHOOK_DEFINITIONS",
        "WEBHOOK_MUTATING",
        "WEBHOOK_SECRET",
        "WEBHOOK_SERVICE",
        "WEBHOOK_VALIDATING",
    }
)
"""The variables the Deployment and its patches set; others are a person's."""

_MANAGER: Final = """\
# The operator's Namespace and Deployment. Edit this file as you like: `ctrl manifests` does not change it.
# What the switches of [tool.ctrlruntime] add is in the patches of config/default, which set the variables of `env` by name.
apiVersion: v1
kind: Namespace
metadata:
  name: {namespace}
  labels:
    app.kubernetes.io/managed-by: kustomize
    app.kubernetes.io/name: {project}
    control-plane: {control_plane}
    # Pods that ask for more than the Pod Security Standard "restricted" are refused here; the operator's asks for less.
    pod-security.kubernetes.io/enforce: restricted
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {deployment}
  namespace: {namespace}
  labels:
    app.kubernetes.io/managed-by: kustomize
    app.kubernetes.io/name: {project}
    control-plane: {control_plane}
spec:
  replicas: 1
  selector:
    matchLabels:
      app.kubernetes.io/name: {project}
      control-plane: {control_plane}
  template:
    metadata:
      annotations:
        kubectl.kubernetes.io/default-container: {container}
      labels:
        app.kubernetes.io/name: {project}
        control-plane: {control_plane}
    spec:
      serviceAccountName: {account}
      # Longer than the manager's own limit for ending what runs.
      terminationGracePeriodSeconds: 40
      securityContext:
        runAsNonRoot: true
        seccompProfile:
          type: RuntimeDefault
      containers:
      - name: {container}
        image: {image}:latest
        args:
        - --leader-elect
        - --health-probe-bind-address=:8081
        - --metrics-bind-address=$(METRICS_BIND_ADDRESS)
        - --metrics-secure
        - --metrics-cert-path=$(METRICS_CERT_PATH)
        - --webhook-cert-path=$(WEBHOOK_CERT_PATH)
        # Only the Pod itself and port forwarding reach this port, which has no login. `ctrl why` uses it.
        - --debug-bind-address=127.0.0.1:8082
        env:
        # These hold until a patch sets them: no metrics, no folders with certificates.
        - name: METRICS_BIND_ADDRESS
          value: "0"
        - name: METRICS_CERT_PATH
          value: ""
        - name: WEBHOOK_CERT_PATH
          value: ""
        ports:
        - name: health
          containerPort: 8081
          protocol: TCP
        securityContext:
          allowPrivilegeEscalation: false
          capabilities:
            drop:
            - ALL
          readOnlyRootFilesystem: true
        livenessProbe:
          httpGet:
            path: /healthz
            port: health
          initialDelaySeconds: 15
          periodSeconds: 20
        readinessProbe:
          httpGet:
            path: /readyz
            port: health
          initialDelaySeconds: 5
          periodSeconds: 10
        # Most of the limit is for the caches. `ctrl doctor` measures an idle operator, and compares it with the limit.
        resources:
          limits:
            cpu: 500m
            memory: 256Mi
          requests:
            cpu: 10m
            memory: 128Mi
        volumeMounts:
        # The root file system is read-only, and Python loads a certificate it made from a file.
        - name: tmp
          mountPath: /tmp
      volumes:
      - name: tmp
        emptyDir:
          # A Pod that writes more is evicted, before it fills its node's disk.
          sizeLimit: 64Mi
"""


def manager_text(settings: Settings) -> str:
    """Return the text of the Namespace and the Deployment."""
    return _MANAGER.format(
        namespace=OWN_NAMESPACE,
        project=settings.project_name,
        control_plane=CONTROL_PLANE,
        deployment=DEPLOYMENT,
        container=CONTAINER,
        account=ACCOUNT,
        image=IMAGE,
    )


def metrics_patch(*, with_certificate: bool) -> Document:
    """Return the patch that serves metrics; without a certificate of cert-manager the operator signs one itself."""
    variables = {"METRICS_BIND_ADDRESS": f":{METRICS_PORT}"}
    ports = [_port("metrics", METRICS_PORT)]
    if not with_certificate:
        return _patch(env=_env(variables), ports=ports)
    variables["METRICS_CERT_PATH"] = METRICS_FOLDER
    return _mounting("metrics-certs", METRICS_SECRET, METRICS_FOLDER, env=_env(variables), ports=ports)


def webhook_patch() -> Document:
    """Return the patch that serves webhooks with cert-manager's certificate."""
    variables = {"WEBHOOK_CERT_PATH": CERTIFICATES_FOLDER}
    ports = [_port("webhook-server", WEBHOOK_PORT)]
    return _mounting("webhook-certs", WEBHOOK_SECRET, CERTIFICATES_FOLDER, env=_env(variables), ports=ports)


def own_certificate_patch(parts: Parts) -> Document:
    """Return the patch that serves webhooks with a certificate the operator keeps in a Secret.

    The variables name the Secret and what has to trust it, as `SecretCertificates` takes them; kustomize puts the final names in.
    """
    kinds = {each["kind"] for each in parts.made.webhooks}
    variables = {
        "WEBHOOK_SECRET": WEBHOOK_SECRET,
        "WEBHOOK_SERVICE": WEBHOOK_SERVICE,
        "WEBHOOK_MUTATING": MUTATING_NAME if "MutatingWebhookConfiguration" in kinds else "",
        "WEBHOOK_VALIDATING": VALIDATING_NAME if "ValidatingWebhookConfiguration" in kinds else "",
        "WEBHOOK_DEFINITIONS": ",".join(each["metadata"]["name"] for each in parts.converted),
    }
    env = [*_env({key: value for key, value in variables.items() if value}), _own("namespace", "POD_NAMESPACE")]
    return _patch(env=env, ports=[_port("webhook-server", WEBHOOK_PORT)])


def namespaced_patch() -> Document:
    """Return the patch that keeps the operator to its own namespace."""
    return _patch(env=[_own("namespace", "WATCH_NAMESPACE")])


def sharding_patch(settings: Settings) -> Document:
    """Return the patch for several replicas that share the objects.

    A rollout replaces one after the other, and each has the time to give its objects away. They run on different nodes where that is
    possible. `ctrl why` and the Leases name a replica by its Pod.
    """
    found = _patch(env=[_own("name", "POD_NAME")])
    found["spec"]["replicas"] = settings.replicas
    found["spec"]["strategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    spread = {
        "labelSelector": {"matchLabels": selector(settings)},
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
    }
    found["spec"]["template"]["spec"] |= {
        "terminationGracePeriodSeconds": _GRACE_OF_A_REPLICA,
        "topologySpreadConstraints": [spread],
    }
    return found


def _mounting(volume: str, secret: str, folder: str, **container: Any) -> Document:
    mounts = [{"name": volume, "mountPath": folder, "readOnly": True}]
    return _patch(volumes=[{"name": volume, "secret": {"secretName": secret}}], volumeMounts=mounts, **container)


def _patch(*, volumes: list[Document] | None = None, **container: Any) -> Document:
    pod: Document = {"containers": [{"name": CONTAINER, **container}]}
    if volumes:
        pod["volumes"] = volumes
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": DEPLOYMENT, "namespace": OWN_NAMESPACE},
        "spec": {"template": {"spec": pod}},
    }


def _env(variables: dict[str, str]) -> list[Document]:
    return [{"name": name, "value": value} for name, value in variables.items()]


def _own(field: str, variable: str) -> Document:
    return {"name": variable, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.{field}"}}}


def _port(name: str, number: int) -> Document:
    return {"name": name, "containerPort": number, "protocol": "TCP"}
