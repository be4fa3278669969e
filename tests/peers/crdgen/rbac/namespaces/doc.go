// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get,namespace=zoo
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=list
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get,namespace=park
// +kubebuilder:rbac:groups="",resources=pods,verbs=get,namespace=zoo

package namespaces
