"""The Game controller: a Deployment, a Service and an Ingress for each Game, and their state in its status."""

from __future__ import annotations

import ctrlruntime as ctrl
from ctrlruntime.api import apps, core, meta, networking
from ctrlruntime.handler import EnqueueRequestForObject, enqueue_request_for_owner
from ctrlruntime.source import Kind
from ctrlruntime.workqueue import ItemExponentialFailureRateLimiter
from examples.game.api import Game, GameStatus, Phase
from examples.game.webhook import fill_in, register_webhooks

WORKERS = 3
RESYNC = 36_000.0  # seconds between two reconciles of each Game without a change
PORT = 80
LABEL = "myapp.qingwave.github.io/game"

ELECTION = ctrl.LeaderElection("game.myapp.qingwave.github.io")


def setup(mgr: ctrl.Manager, *, long_way: bool = False, webhooks: bool = True) -> None:
    """Add the controllers and webhooks to a manager. `ctrl manifests` calls this too."""
    reconciler = GameReconciler(mgr.client)
    if long_way:
        reconciler.setup_the_long_way(mgr)
    else:
        reconciler.setup_with_manager(mgr)
    if webhooks:
        register_webhooks(mgr)


@ctrl.rbac(groups="apps", resources="deployments", verbs="create;update")
@ctrl.rbac(groups="", resources="services", verbs="create;update")
@ctrl.rbac(groups="networking.k8s.io", resources="ingresses", verbs="create;update")
@ctrl.rbac(groups="myapp.qingwave.github.io", resources="games", verbs="get")
@ctrl.rbac(groups="myapp.qingwave.github.io", resources="games/status", verbs="update")
class GameReconciler:
    def __init__(self, client: ctrl.Client) -> None:
        self.client = client
        self.log = ctrl.get_logger("game")

    def setup_with_manager(self, mgr: ctrl.Manager) -> None:
        """Build the controller with the builder."""
        (
            ctrl.new_controller_managed_by(mgr)
            .for_(Game)
            .owns(apps.Deployment)
            .owns(core.Service)
            .owns(networking.Ingress)
            .with_options(max_concurrent_reconciles=WORKERS)
            .complete(self)
        )

    def setup_the_long_way(self, mgr: ctrl.Manager) -> None:
        """Build the same controller without the builder."""
        controller = ctrl.Controller(
            "game",
            self,
            options=ctrl.ControllerOptions(
                max_concurrent_reconciles=WORKERS,
                # The retry delays of a failed request, in seconds. The queue is always a priority queue.
                rate_limiter=ItemExponentialFailureRateLimiter(base=0.005, cap=1000.0),
            ),
            metrics=mgr.metrics,
            journal=mgr.journal,
            group=ctrl.gvk_for(Game).group,
            kind="Game",
        )
        controller.watch(Kind(mgr.cache, Game, EnqueueRequestForObject()))
        to_the_game = enqueue_request_for_owner(Game, only_controller_owner=True)
        controller.watch(Kind(mgr.cache, apps.Deployment, to_the_game))
        controller.watch(Kind(mgr.cache, core.Service, to_the_game))
        controller.watch(Kind(mgr.cache, networking.Ingress, to_the_game))
        mgr.register_controller_name(controller.name)
        mgr.add(controller)

    async def reconcile(self, request: ctrl.Request) -> ctrl.Result | None:
        game = await self.client.get_or_none(Game, request)
        if game is None or game.metadata.deletion_timestamp is not None:
            self.log.info("game no longer exists; Kubernetes deletes its dependents")
            return None
        fill_in(game)  # in memory, for Games stored without webhooks

        deployment = await self.sync_deployment(game)
        await self.sync_service(game)
        await self.sync_ingress(game)

        status = status_of(game, deployment)
        if status != game.status:
            game.status = status
            await self.client.status.update(game)
            self.log.info("status written", phase=status.phase, ready=status.ready_replicas)
        return None

    async def sync_deployment(self, game: Game) -> apps.Deployment:
        def shape(deployment: apps.Deployment) -> None:
            deployment.spec.replicas = game.spec.replicas
            deployment.spec.selector = meta.LabelSelector(match_labels=labels_of(game))
            template = deployment.spec.template
            template.metadata.labels = labels_of(game)
            if not template.spec.containers:
                template.spec.containers = [core.Container(name="game")]
            container = template.spec.containers[0]
            container.image = game.spec.image
            container.ports = [core.ContainerPort(name="http", container_port=PORT, protocol="TCP")]
            ctrl.set_controller_reference(game, deployment)

        deployment, result = await ctrl.create_or_update(self.client, apps.Deployment, ctrl.object_key(game), shape)
        self.tell(deployment, result)
        return deployment

    async def sync_service(self, game: Game) -> None:
        def shape(service: core.Service) -> None:
            service.spec.selector = labels_of(game)
            service.spec.ports = [core.ServicePort(name="http", port=PORT, target_port="http", protocol="TCP")]
            ctrl.set_controller_reference(game, service)

        self.tell(*await ctrl.create_or_update(self.client, core.Service, ctrl.object_key(game), shape))

    async def sync_ingress(self, game: Game) -> None:
        def shape(ingress: networking.Ingress) -> None:
            backend = networking.IngressBackend(
                service=networking.IngressServiceBackend(
                    name=game.metadata.name, port=networking.ServiceBackendPort(number=PORT)
                )
            )
            path = networking.HTTPIngressPath(path="/", path_type="Prefix", backend=backend)
            ingress.spec.rules = [
                networking.IngressRule(host=game.spec.host, http=networking.HTTPIngressRuleValue(paths=[path]))
            ]
            ctrl.set_controller_reference(game, ingress)

        self.tell(*await ctrl.create_or_update(self.client, networking.Ingress, ctrl.object_key(game), shape))

    def tell(self, obj: ctrl.Object, result: ctrl.OperationResult) -> None:
        if result is not ctrl.OperationResult.UNCHANGED:
            self.log.info("written", kind=obj.kind, result=result.value)


def labels_of(game: Game) -> dict[str, str]:
    """Return the labels of the pods of a game."""
    return {LABEL: game.metadata.name}


def status_of(game: Game, deployment: apps.Deployment) -> GameStatus:
    """Return the status of a game with this Deployment."""
    return GameStatus(
        phase=phase_of(game, deployment),
        replicas=deployment.status.replicas,
        ready_replicas=deployment.status.ready_replicas,
        label_selector=str(ctrl.selector.from_labels(labels_of(game))),
    )


def phase_of(game: Game, deployment: apps.Deployment) -> Phase:
    """Return the phase: Pending until the first pod is ready, NotReady while pods are missing."""
    states = {condition.type: condition.status for condition in deployment.status.conditions}
    if states.get("ReplicaFailure") == "True" or states.get("Progressing") == "False":
        return "Failed"
    if deployment.status.ready_replicas >= game.spec.replicas:
        return "Running"
    return "NotReady" if deployment.status.ready_replicas else "Pending"
