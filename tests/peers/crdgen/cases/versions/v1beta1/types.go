// Package v1beta1 holds one version of the cases with several.
//
// +groupName=versions.example.com
// +versionName=v1beta1
package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VersionedCase has several versions; this is v1beta1.
// +kubebuilder:deprecatedversion
// +kubebuilder:resource:shortName=vc
type VersionedCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Old string `json:"old"`
	New string `json:"new,omitempty"`
}
