// +kubebuilder:webhook:url="https://hooks.example.com/validate",mutating=false,failurePolicy=fail,sideEffects=None,groups=x.example.com,resources=xs,verbs=create,versions=v1,name=x.example.com,admissionReviewVersions=v1

package byurl
