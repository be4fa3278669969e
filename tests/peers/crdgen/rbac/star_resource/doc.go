// +kubebuilder:rbac:groups=apps,resources=*,verbs=get
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list
// +kubebuilder:rbac:groups=apps,resources=*/status,verbs=update

package starresource
