// +kubebuilder:rbac:groups=extensions,resources=ingresses,verbs=get
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses,verbs=get

package groupsmerge
