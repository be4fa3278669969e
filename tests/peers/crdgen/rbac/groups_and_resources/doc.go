// +kubebuilder:rbac:groups=apps;batch,resources=jobs;deployments,verbs=get;list
// +kubebuilder:rbac:groups=apps,resources=jobs,verbs=list

package groupsandresources
