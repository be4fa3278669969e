"""Image policy: the operator rejects Pods with images from other registries, or with images that have neither a tag nor a digest.

A validating webhook checks Pods, not Deployments. So it covers each kind that creates Pods, also kinds of other operators.

- `kubectl debug` adds containers through the subresource `pods/ephemeralcontainers`. The rule has to name it.
- While the operator is not running, the API server rejects each Pod that the rule selects. So the rule excludes `kube-system` and the
  namespace of the operator. Otherwise the operator could not start again.
- An update is checked only for images that it adds. A new policy then does not block changes of old Pods, such as the end of a deletion.
- One response has all errors, each with the path of its field. The tag `latest` is a warning, which kubectl prints.

Shows: `ctrl.webhook.validating`, `WebhookRule` with a subresource and a namespace selector, `FieldError`, warnings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import ctrlruntime as ctrl
from ctrlruntime.api import core
from ctrlruntime.webhook import FieldError, Warnings
from examples.cookbook import running

REGISTRIES = ("registry.example.com", "registry.k8s.io")
RULE = ctrl.webhook.WebhookRule(
    mutating=False,
    name="images.cookbook.example.com",
    groups=[""],
    versions=["v1"],
    resources=["pods", "pods/ephemeralcontainers"],
    operations=["CREATE", "UPDATE"],
    namespace_selector={
        "matchExpressions": [
            {
                "key": "kubernetes.io/metadata.name",
                "operator": "NotIn",
                "values": ["kube-system", "image-policy-system"],
            }
        ]
    },
    timeout_seconds=5,
)


class ImagePolicy:
    def __init__(self, registries: tuple[str, ...]) -> None:
        self.registries = registries
        self.log = ctrl.get_logger("image-policy")

    def validate_create(self, pod: core.Pod) -> Warnings:
        return self.check(pod, dict(images(pod)))

    def validate_update(self, old: core.Pod, new: core.Pod) -> Warnings:
        known = dict(images(old)).values()
        return self.check(new, {field: image for field, image in images(new) if image not in known})

    def check(self, pod: core.Pod, found: dict[str, str]) -> Warnings:
        errors = [error for field, image in found.items() for error in self.errors(field, image)]
        self.log.info("checked", images=list(found.values()), errors=len(errors))
        if errors:
            raise ctrl.webhook.invalid(core.Pod, pod.metadata.name, errors)
        return [
            f"{field}: {image} can change, use a version or a digest"
            for field, image in found.items()
            if tag_of(image) == "latest"
        ]

    def errors(self, field: str, image: str) -> Iterator[FieldError]:
        registry = registry_of(image)
        if registry not in self.registries:
            allowed = ", ".join(self.registries)
            yield FieldError.invalid(field, image, f"the registry {registry} is not one of {allowed}")
        if not tag_of(image) and "@" not in image:
            yield FieldError.invalid(field, image, "the image needs a tag or a digest")


def images(pod: core.Pod) -> Iterator[tuple[str, str]]:
    """Yield the path and the image of each container."""
    lists: dict[str, Sequence[core.Container | core.EphemeralContainer]] = {
        "initContainers": pod.spec.init_containers,
        "containers": pod.spec.containers,
        "ephemeralContainers": pod.spec.ephemeral_containers,
    }
    for name, containers in lists.items():
        for number, container in enumerate(containers):
            yield f"spec.{name}[{number}].image", container.image


def registry_of(image: str) -> str:
    """Return `localhost:5000` for `localhost:5000/web`, and `docker.io` for `nginx` and `library/nginx`."""
    host, slash, _ = image.partition("/")
    return host if slash and (host == "localhost" or "." in host or ":" in host) else "docker.io"


def tag_of(image: str) -> str:
    return image.partition("@")[0].rpartition("/")[2].partition(":")[2]


def setup(mgr: ctrl.Manager) -> None:
    """Add the webhook to a manager. `ctrl manifests` calls this too."""
    policy = ctrl.webhook.validating(core.Pod, ImagePolicy(REGISTRIES))
    mgr.webhook_server.register("/validate-images", ctrl.webhook.Admission(policy), webhook=RULE)


SAMPLE = """
apiVersion: v1
kind: Pod
metadata: {name: shop, namespace: default}
spec: {containers: [{name: shop, image: "registry.example.com/shop:latest"}]}
"""


def main() -> None:
    running.run(setup, sample=SAMPLE, shows="pods", webhooks=True)


if __name__ == "__main__":
    main()
