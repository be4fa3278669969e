// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get,namespace=zoo

package onlynamespaced
