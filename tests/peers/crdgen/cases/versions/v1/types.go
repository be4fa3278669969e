// Package v1 holds one version of the cases with several.
//
// +groupName=versions.example.com
// +versionName=v1
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VersionedCase has several versions; this is v1.
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=vc
type VersionedCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	New string `json:"new"`

	Status string `json:"status,omitempty"`
}
