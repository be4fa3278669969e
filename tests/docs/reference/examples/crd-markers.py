"""Runs after the blocks of docs/reference/examples/crd-markers.md, in their namespace."""

from ctrlruntime.generate import crds
from ctrlruntime.olm.csv.definitions import owned_definitions
from ctrlruntime.olm.csv.objects import Objects


def document(kind: type[ctrl.Object], spec: dict[str, Any]) -> ctrl.Unstructured:
    name = ctrl.gvk_for(kind)
    metadata = {"name": "example", "namespace": "default"}
    return ctrl.Unstructured.from_dict(
        {"apiVersion": name.api_version, "kind": name.kind, "metadata": metadata, "spec": spec}
    )


async def store_examples(config: ctrl.Config) -> None:
    kinds = [Server, Club, Turn, Match, Mod, Board, Puzzle, Tournament, Mirror]
    cluster = ctrl.Cluster(config, scheme=ctrl.Scheme(*kinds))
    client = cluster.client
    try:
        await ctrl.install_crds(client, *kinds)
        for kind, spec, problem in (
            (Server, {"address": "many"}, "spec.address"),
            (Club, {"members": ["ada", "ada"]}, "spec.members"),
            (Turn, {"reminder": {}}, "spec.reminder"),
            (Turn, {"reminder": {"email": "a", "chat": "b", "phone": "c"}}, "spec.reminder"),
            (Match, {"winner": None}, "spec.rules"),
            (Mod, {"manifest": {"kind": "ConfigMap"}}, "spec.manifest.apiVersion"),
            (Mirror, {"template": {"data": {}}}, "spec.template.apiVersion"),
        ):
            try:
                await client.create(document(kind, spec))
            except ctrl.Invalid as error:
                assert problem in str(error), error
            else:
                raise AssertionError(f"{kind.__name__} {spec} was created")

        rules = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "rules"}}
        for kind, spec in (
            (Match, {"winner": None, "rules": "blitz"}),
            (Mod, {"setting": [1, {"a": None}], "options": {"a": {"b": 1}}, "manifest": rules}),
            (Board, {"theme": {"color": "red", "border": "wide"}}),
            (Puzzle, {"solution": {"text": "Qh7", "bestReply": {"text": "Kh7", "bestReply": {"text": "Rh1"}}}}),
            (Mirror, {"template": {**rules, "data": {"time": "90"}}}),
        ):
            made = await client.create(document(kind, spec))
            assert made["spec"] == spec, made
            found = await cluster.api_reader.get(kind, made.metadata)
            assert found.to_dict()["spec"] == spec, found
        puzzle = await cluster.api_reader.get(Puzzle, ctrl.NamespacedName("default", "example"))
        assert puzzle.spec.solution.best_reply.best_reply.text == "Rh1"
        await ctrl.uninstall_crds(client, *kinds)
        assert not await cluster.api_reader.list(Definition)
    finally:
        await cluster.close()


with Environment(backend="embedded") as environment:
    asyncio.run(store_examples(ctrl.get_config(str(environment.kubeconfig_path))))

[entry] = owned_definitions(Objects(crds([League])), [], [League], {}, print)
assert entry["actionDescriptors"] == [
    {
        "path": "spec.paused",
        "displayName": "Pause",
        "description": "Stop all clocks.",
        "x-descriptors": ["urn:alm:descriptor:com.tectonic.ui:booleanSwitch"],
        "value": True,
    }
]
