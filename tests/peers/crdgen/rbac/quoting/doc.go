// +kubebuilder:rbac:groups="",resources=pods/exec;pods/log,verbs=create
// +kubebuilder:rbac:groups=1.example.com,resources=things,resourceNames=yes;007,verbs=get

package quoting
