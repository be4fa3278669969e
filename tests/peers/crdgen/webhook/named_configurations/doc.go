// +kubebuilder:webhookconfiguration:mutating=true,name=game-mutating
// +kubebuilder:webhookconfiguration:mutating=false,name=game-validating
// +kubebuilder:webhook:path=/mutate-x,mutating=true,failurePolicy=fail,sideEffects=None,groups=x.example.com,resources=xs,verbs=create,versions=v1,name=mx.example.com,admissionReviewVersions=v1
// +kubebuilder:webhook:path=/validate-x,mutating=false,failurePolicy=fail,sideEffects=None,groups=x.example.com,resources=xs,verbs=create,versions=v1,name=vx.example.com,admissionReviewVersions=v1

package namedconfigurations
