// Package v1alpha1 holds one version of the cases with several.
//
// +groupName=versions.example.com
// +versionName=v1alpha1
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VersionedCase has several versions; this is v1alpha1.
// +kubebuilder:unservedversion
// +kubebuilder:deprecatedversion:warning="use v1"
// +kubebuilder:resource:shortName=vc
type VersionedCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Old string `json:"old"`
}
