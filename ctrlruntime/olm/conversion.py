"""CRDs as OLM installs them: with the conversion webhook of their ClusterServiceVersion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ctrlruntime.generate.options import Document
from ctrlruntime.olm.api import ClusterServiceVersion
from ctrlruntime.olm.refusals import CONVERSION

__all__ = ["client_config", "installed_definition"]

_PORT: Final = 443


def client_config(deployment: str, *, namespace: str = "", path: str = "", port: int = 0) -> Document:
    """Return the client config of the webhook of a Deployment: the Service that OLM creates. The defaults are the path / and port 443."""
    name = f"{deployment.replace('.', '-')}-service"
    return {"service": {"name": name, "namespace": namespace, "path": path or "/", "port": port or _PORT}}


def installed_definition(
    definition: Mapping[str, Any], csv: ClusterServiceVersion, *, namespace: str = ""
) -> Mapping[str, Any]:
    """Return a CRD with the conversion that OLM sets, unchanged if no webhook converts it. `namespace` is the operator's."""
    name = definition["metadata"]["name"]
    for webhook in csv.spec.webhookdefinitions:
        if webhook.type == CONVERSION and name in webhook.conversion_crds:
            client = client_config(
                webhook.deployment_name, namespace=namespace, path=webhook.webhook_path, port=webhook.container_port
            )
            converter = {"clientConfig": client, "conversionReviewVersions": webhook.admission_review_versions}
            conversion = {"strategy": "Webhook", "webhook": converter}
            return {**definition, "spec": {**definition["spec"], "conversion": conversion}}
    return definition
