package v1

import (
	"k8s.io/apimachinery/pkg/runtime"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EmbeddedCase holds whole objects.
type EmbeddedCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Template is any object.
	// +kubebuilder:validation:EmbeddedResource
	// +kubebuilder:pruning:PreserveUnknownFields
	Template runtime.RawExtension `json:"template"`
}

// Loose keeps what it does not know.
// +kubebuilder:pruning:PreserveUnknownFields
type Loose struct {
	Known string `json:"known,omitempty"`
}

// PreserveCase keeps unknown fields.
type PreserveCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Loose Loose `json:"loose"`
	// Here keeps them by the field.
	// +kubebuilder:pruning:PreserveUnknownFields
	Here Span `json:"here"`
}

// AnythingCase holds any JSON.
type AnythingCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Value is anything.
	Value apiextensionsv1.JSON `json:"value"`
	// Object is any object.
	Object runtime.RawExtension `json:"object"`
	// Values are anything.
	Values []apiextensionsv1.JSON `json:"values,omitempty"`
	// ByName are anything.
	ByName map[string]apiextensionsv1.JSON `json:"byName,omitempty"`
}

// SchemalessCase says itself what its field is.
type SchemalessCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Tree is an object.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Tree *Span `json:"tree,omitempty"`
}

// NullableCase takes nulls.
type NullableCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +nullable
	Name *string `json:"name,omitempty"`
	// +nullable
	Names []string `json:"names"`
	// +nullable
	Span *Span `json:"span"`
}

// RequiredCase has fields that must be there and others.
type RequiredCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Zebra string `json:"zebra"`
	Apple string `json:"apple"`
	// +kubebuilder:validation:Required
	Mango string `json:"mango,omitempty"`
	// +optional
	Pear  string  `json:"pear"`
	Plum  string  `json:"plum,omitempty"`
	Grape *string `json:"grape,omitempty"`
}

// DefaultCase has defaults of scalars.
type DefaultCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:default=3
	Count int32 `json:"count,omitempty"`
	// +kubebuilder:default="a: b"
	Text string `json:"text,omitempty"`
	// +kubebuilder:default=true
	Flag bool `json:"flag,omitempty"`
	// +kubebuilder:default=false
	Off *bool `json:"off,omitempty"`
	// +kubebuilder:default=0
	Zero *int `json:"zero,omitempty"`
	// +kubebuilder:default=""
	Empty string `json:"empty,omitempty"`
	// +kubebuilder:default=Running
	Phase Phase `json:"phase,omitempty"`
	// +kubebuilder:default="1"
	Digits string `json:"digits,omitempty"`
}

// DefaultListCase has defaults of lists and maps.
type DefaultListCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:default={80,443}
	Ports []int `json:"ports,omitempty"`
	// +kubebuilder:default={"a","b"}
	Names []string `json:"names,omitempty"`
	// +kubebuilder:default={tier:"web",app:"x"}
	Labels map[string]string `json:"labels,omitempty"`
	// +kubebuilder:default={}
	None []string `json:"none,omitempty"`
	// +kubebuilder:default={{from:1,to:2}}
	Spans []Span `json:"spans,omitempty"`
}

// Inner has a default.
type Inner struct {
	// +kubebuilder:default=5
	Size int `json:"size,omitempty"`
	// Name has none.
	Name string `json:"name,omitempty"`
}

// Outer has one, since what is inside does.
type Outer struct {
	// +kubebuilder:default={}
	Inner Inner `json:"inner,omitempty"`
}

// DefaultNestedCase has defaults inside of defaults.
type DefaultNestedCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:default={}
	Spec Outer `json:"spec,omitempty"`
	// +kubebuilder:default={inner:{size:7}}
	Other Outer `json:"other,omitempty"`
	// +kubebuilder:default={name:"x"}
	Named *Inner `json:"named,omitempty"`
}

// ExampleCase shows values.
type ExampleCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:example="example.com"
	Host string `json:"host"`
	// +kubebuilder:example=8080
	Port int `json:"port"`
	// +kubebuilder:example={"a","b"}
	Names []string `json:"names"`
	// +kubebuilder:example={from:1,to:2}
	Span Span `json:"span"`
}

// Titled has a title.
// +kubebuilder:title="The type's"
type Titled struct {
	A string `json:"a"`
}

// TitleCase has titles.
type TitleCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:title="A name"
	Name string `json:"name"`
	One  Titled `json:"one"`
	// +kubebuilder:title="The field's"
	Two Titled `json:"two"`
}

// Linked has documentation elsewhere.
// +kubebuilder:externalDocs:url="https://example.com/type"
type Linked struct {
	A string `json:"a"`
}

// ExternalDocsCase has links.
type ExternalDocsCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:externalDocs:url="https://example.com/name",description="More of it"
	Name string `json:"name"`
	One  Linked `json:"one"`
	// +kubebuilder:externalDocs:url="https://example.com/field"
	Two Linked `json:"two"`
}

// ImmutableCase has fields that stay.
type ImmutableCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +k8s:immutable
	Name string `json:"name"`
	// +k8s:immutable
	Class *string `json:"class,omitempty"`
	// +k8s:immutable
	Span Span `json:"span"`
}

// Entry has a name.
type Entry struct {
	Name string `json:"name"`
	// +kubebuilder:default=TCP
	Protocol string `json:"protocol,omitempty"`
	Value    int    `json:"value,omitempty"`
}

// ListMapCase has lists with keys.
type ListMapCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +listType=map
	// +listMapKey=name
	Entries []Entry `json:"entries"`
	// +listType=map
	// +listMapKey=name
	// +listMapKey=protocol
	Pairs []Entry `json:"pairs,omitempty"`
}

// ListSetCase has lists that are sets.
type ListSetCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +listType=set
	Names []string `json:"names"`
	// +listType=set
	Numbers []int64 `json:"numbers"`
}

// ListAtomicCase has lists that are one thing.
type ListAtomicCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +listType=atomic
	Entries []Entry `json:"entries"`
}

// MapTypeCase has maps of both sorts.
type MapTypeCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +mapType=atomic
	Whole map[string]string `json:"whole"`
	// +mapType=granular
	Each map[string]string `json:"each"`
}

// Whole is replaced at once.
// +structType=atomic
type Whole struct {
	A string `json:"a,omitempty"`
}

// StructTypeCase has objects that are one thing.
type StructTypeCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Whole Whole `json:"whole"`
}
