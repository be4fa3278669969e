// +kubebuilder:webhook:path=/mutate-x,mutating=true,failurePolicy=fail,sideEffects=None,groups=x.example.com,resources=xs,verbs=create,versions=v1,name=x.example.com,admissionReviewVersions=v1,patch=`{"namespaceSelector":{"matchLabels":{"team":"a"}},"objectSelector":{"matchExpressions":[{"key":"tier","operator":"In","values":["b","c"]}]},"matchConditions":[{"name":"not-system","expression":"!request.userInfo.username.startsWith('system:')"}]}`

package patched
