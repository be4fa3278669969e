// +kubebuilder:webhook:path=/validate-myapp-qingwave-github-io-v1-game,mutating=false,failurePolicy=fail,sideEffects=None,groups=myapp.qingwave.github.io,resources=games,verbs=create;update,versions=v1,name=vgame-v1.kb.io,admissionReviewVersions=v1

package validating
