// +kubebuilder:webhook:path=/mutate-x,mutating=true,failurePolicy=Fail,matchPolicy=Exact,sideEffects=NoneOnDryRun,timeoutSeconds=7,groups=x.example.com;y.example.com,resources=xs;ys,verbs=*,versions=*,name=x.example.com,serviceName=hooks,serviceNamespace=away,servicePort=8443,reinvocationPolicy=IfNeeded,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:path=/validate-x,mutating=false,failurePolicy=ignore,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=30,groups=*,resources=*,verbs=create;update,versions=v1,name=y.example.com,admissionReviewVersions=v1

package everythingset
