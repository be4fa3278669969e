package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Counts are how many there are.
type Counts struct {
	Replicas int32 `json:"replicas,omitempty"`
	// Selector finds them.
	Selector string `json:"selector,omitempty"`
	Phase    string `json:"phase,omitempty"`
	Ready    bool   `json:"ready,omitempty"`
}

// ScopeCase belongs to the cluster.
// +kubebuilder:resource:scope=Cluster
type ScopeCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

// NamesCase has names of its own.
// +kubebuilder:resource:path=namelings,singular=nameling,shortName=nl;nls,categories=all;names
type NamesCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

// StatusCase has a status.
// +kubebuilder:subresource:status
type StatusCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   Counts `json:"spec,omitempty"`
	Status Counts `json:"status,omitempty"`
}

// PlainStatusCase has a status that is a field like others.
type PlainStatusCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Status Counts `json:"status,omitempty"`
}

// ScaleCase can be scaled.
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
type ScaleCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   Counts `json:"spec"`
	Status Counts `json:"status,omitempty"`
}

// ScaleOnlyCase can be scaled and has no selector.
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas
type ScaleOnlyCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   Counts `json:"spec"`
	Status Counts `json:"status,omitempty"`
}

// ColumnsCase has columns of every sort.
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="DESIRED",type=integer,JSONPath=`.spec.replicas`,description="How many: wanted",format=int32
// +kubebuilder:printcolumn:name="Ready",type=boolean,JSONPath=`.status.ready`,priority=1
// +kubebuilder:printcolumn:name="True",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Label",type=string,JSONPath=`.metadata.labels['app\.kubernetes\.io/name']`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
type ColumnsCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   Counts        `json:"spec,omitempty"`
	Status ColumnsStatus `json:"status,omitempty"`
}

// ColumnsStatus has what columns show.
type ColumnsStatus struct {
	Phase string `json:"phase,omitempty"`
	Ready bool   `json:"ready,omitempty"`
	// +listType=map
	// +listMapKey=type
	Conditions []Mark `json:"conditions,omitempty"`
}

// Mark is a condition.
type Mark struct {
	Type   string `json:"type"`
	Status string `json:"status,omitempty"`
}

// PlainColumnsCase has a column and no status.
// +kubebuilder:printcolumn:name="N",type=integer,JSONPath=`.spec.replicas`
type PlainColumnsCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec Counts `json:"spec,omitempty"`
}

// SelectableCase can be selected by fields.
// +kubebuilder:selectablefield:JSONPath=`.spec.phase`
// +kubebuilder:selectablefield:JSONPath=`.spec.replicas`
type SelectableCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec Counts `json:"spec,omitempty"`
}

// DeprecatedCase is old.
// +kubebuilder:deprecatedversion:warning="plain.example.com/v1 DeprecatedCase is old; use another"
type DeprecatedCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

// DeprecatedPlainlyCase is old, and that is all.
// +kubebuilder:deprecatedversion
type DeprecatedPlainlyCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

// MetadataCase has labels and annotations.
// +kubebuilder:metadata:labels="tier=web",annotations="example.com/note=a: b"
// +kubebuilder:metadata:labels="app.kubernetes.io/name=x",annotations="example.com/n=1"
type MetadataCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}
