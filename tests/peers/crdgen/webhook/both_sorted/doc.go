// +kubebuilder:webhook:path=/validate-b,mutating=false,failurePolicy=ignore,sideEffects=None,groups=b.example.com,resources=things,verbs=delete,versions=v1,name=zeta.example.com,admissionReviewVersions=v1
// +kubebuilder:webhook:path=/validate-a,mutating=false,failurePolicy=fail,sideEffects=NoneOnDryRun,groups=a.example.com,resources=things,verbs=create,versions=v1;v1beta1,name=alpha.example.com,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:path=/mutate-a,mutating=true,failurePolicy=fail,sideEffects=None,groups=a.example.com,resources=things,verbs=create,versions=v1,name=m.example.com,admissionReviewVersions=v1

package bothsorted
