// Package v2 holds one version of the cases with several.
//
// +groupName=versions.example.com
// +versionName=v2
package v2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VersionedCase has several versions; this is v2.
// +kubebuilder:skipversion
// +kubebuilder:resource:shortName=vc
type VersionedCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Newer string `json:"newer"`
}
