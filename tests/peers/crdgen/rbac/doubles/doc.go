// +kubebuilder:rbac:groups=apps;apps,resources=deployments;deployments,verbs=get;get
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get

package doubles
