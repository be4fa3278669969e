"""Bodies of apply patches: a configuration, with what it says twice."""

from __future__ import annotations

from ctrlruntime.apiserver.go_values import go_name
from ctrlruntime.apiserver.yaml_reader import YAMLProblem, read_yaml
from ctrlruntime.errors import BadRequest
from ctrlruntime.schema.trees import Document


def read_configuration(body: bytes) -> tuple[Document, list[str]]:
    """Return the configuration and what it says twice (`line 5: key "q" already set in map`). Raises: BadRequest."""
    try:
        tree, repeated = read_yaml(body)
    except YAMLProblem as error:
        raise BadRequest(f"error decoding YAML: error converting YAML to JSON: {error}") from None
    if tree is None:
        return {}, repeated
    if type(tree) is not dict:
        what = go_name(tree)
        raise BadRequest(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal "
            f"{what} into Go value of type map[string]interface {{}}"
        )
    return tree, repeated
