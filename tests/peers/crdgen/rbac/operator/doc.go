// +kubebuilder:rbac:groups=myapp.qingwave.github.io,resources=games,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=myapp.qingwave.github.io,resources=games/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=myapp.qingwave.github.io,resources=games/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=list;watch;get;patch;create;update
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses,verbs=list;watch;get;patch;create;update
// +kubebuilder:rbac:groups=core,resources=services,verbs=list;watch;get;patch;create;update
// +kubebuilder:rbac:groups=core,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;create;update,namespace=system

package operator
