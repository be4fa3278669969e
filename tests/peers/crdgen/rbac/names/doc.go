// +kubebuilder:rbac:groups="",resources=configmaps,resourceNames=zeta;alpha;alpha,verbs=get;update
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=list
// +kubebuilder:rbac:groups="",resources=secrets,resourceNames=alpha;zeta,verbs=update;get

package names
