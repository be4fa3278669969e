// +kubebuilder:rbac:groups=a,resources=x,verbs=get
// +kubebuilder:rbac:groups=b,resources=x,verbs=get
// +kubebuilder:rbac:groups=a,resources=y,verbs=get
// +kubebuilder:rbac:groups=b,resources=y,verbs=get
// +kubebuilder:rbac:groups=c,resources=x,verbs=get

package mergeaftermerge
