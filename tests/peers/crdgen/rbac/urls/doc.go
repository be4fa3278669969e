// +kubebuilder:rbac:urls=/metrics,verbs=get
// +kubebuilder:rbac:urls=/healthz;/metrics,verbs=get
// +kubebuilder:rbac:urls=/debug/*,verbs=get;post

package urls
