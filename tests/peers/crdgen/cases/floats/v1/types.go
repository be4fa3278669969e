package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FloatCase has floats.
type FloatCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:Minimum=0.5
	// +kubebuilder:validation:Maximum=1234567.25
	// +kubebuilder:validation:MultipleOf=0.25
	Ratio float64 `json:"ratio"`
	// +kubebuilder:default=1.5
	Factor float64 `json:"factor,omitempty"`
	// +kubebuilder:validation:Minimum=0.000001
	// +kubebuilder:validation:Maximum=100000000000000000000000
	Wide float64 `json:"wide,omitempty"`
}
