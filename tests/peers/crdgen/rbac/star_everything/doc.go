// +kubebuilder:rbac:groups=*,resources=*,verbs=*

package stareverything
