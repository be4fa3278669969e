// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get,roleName=reader
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=update
// +kubebuilder:rbac:groups="",resources=pods,verbs=get,namespace=zoo,roleName=zookeeper
// +kubebuilder:rbac:groups="",resources=pods,verbs=get,namespace=zoo,roleName=aide

package rolenames
