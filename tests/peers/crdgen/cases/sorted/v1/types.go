package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Color is one of a few.
// +k8s:enum
type Color string

const (
	Red   Color = "red"
	Blue  Color = "blue"
	Green Color = "green"
)

// SortedCase has an enum that is sorted.
type SortedCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Color Color `json:"color"`
}
