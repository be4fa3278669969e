// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;*;list

package starverb
