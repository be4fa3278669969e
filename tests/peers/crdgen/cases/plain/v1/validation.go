package v1

import (
	"k8s.io/apimachinery/pkg/util/intstr"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaximumCase has upper bounds.
type MaximumCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:Maximum=10
	Any int `json:"any"`
	// +kubebuilder:validation:Maximum=-1
	Small int32 `json:"small,omitempty"`
	// +kubebuilder:validation:Maximum=100000
	// +kubebuilder:validation:Minimum=-5
	Large int64 `json:"large,omitempty"`
}

// MinimumCase has lower bounds.
type MinimumCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:Minimum=0
	Any int `json:"any"`
	// +kubebuilder:validation:Minimum=1
	Small int32 `json:"small,omitempty"`
}

// ExclusiveCase has bounds that are no values themselves.
type ExclusiveCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:ExclusiveMinimum=true
	Above int `json:"above"`
	// +kubebuilder:validation:Maximum=10
	// +kubebuilder:validation:ExclusiveMaximum=true
	Below int `json:"below"`
}

// MultipleOfCase has steps.
type MultipleOfCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:MultipleOf=8
	Bits int `json:"bits"`
}

// BigBoundsCase has bounds that a float cannot hold exactly.
type BigBoundsCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:Maximum=9223372036854775807
	// +kubebuilder:validation:Minimum=-9223372036854775808
	Wide int64 `json:"wide"`
	// +kubebuilder:validation:Maximum=2147483647
	Int int32 `json:"int"`
	// +kubebuilder:validation:Maximum=1000000000000
	Round int64 `json:"round"`
}

// LengthCase bounds the length of texts.
type LengthCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:MinLength=1
	Host string `json:"host"`
	// +kubebuilder:validation:MinLength=0
	Any string `json:"any,omitempty"`
}

// PatternCase wants texts of a form.
type PatternCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	Label string `json:"label"`
	// +kubebuilder:validation:Pattern=`^\d+%?$`
	Percent string `json:"percent,omitempty"`
}

// ItemsCase bounds the length of lists.
type ItemsCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:MinItems=1
	Names []string `json:"names"`
}

// ItemMarkersCase says things of the items of lists.
type ItemMarkersCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z]+$`
	// +kubebuilder:validation:MaxItems=4
	Names []string `json:"names"`
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:Maximum=65535
	Ports []int32 `json:"ports,omitempty"`
	// +kubebuilder:validation:items:Enum=a;b
	Letters []string `json:"letters,omitempty"`
	// +kubebuilder:validation:items:Format=ipv4
	Addresses []string `json:"addresses,omitempty"`
	// +kubebuilder:validation:items:XValidation:rule="self != 'x'",message="no x"
	Free []string `json:"free,omitempty"`
}

// PropertiesCase bounds the size of maps.
type PropertiesCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:MaxProperties=8
	// +kubebuilder:validation:MinProperties=1
	Labels map[string]string `json:"labels"`
}

// Sized is an object of bounded size.
// +kubebuilder:validation:MaxProperties=3
type Sized struct {
	A string `json:"a,omitempty"`
	B string `json:"b,omitempty"`
}

// SizedCase bounds the size of objects.
type SizedCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Plain Sized `json:"plain"`
	// Filled says what it is.
	Filled Sized `json:"filled"`
}

// EnumCase has texts and numbers of a list.
type EnumCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:Enum=Never;Always;OnFailure
	Policy string `json:"policy"`
	// +kubebuilder:validation:Enum=3;1;2
	Level int `json:"level"`
	// +kubebuilder:validation:Enum=one
	Single string `json:"single,omitempty"`
}

// Phase says how far it is.
// +kubebuilder:validation:Enum=Pending;Running;Failed
type Phase string

// EnumTypeCase has a type of its own for an enum.
type EnumTypeCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Phase Phase `json:"phase"`
	// Last is the one before.
	Last *Phase `json:"last,omitempty"`
	// All are those there were.
	All []Phase `json:"all,omitempty"`
	// ByName are those of others.
	ByName map[string]Phase `json:"byName,omitempty"`
}

// FormatCase has texts of known forms.
type FormatCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:Format=ipv4
	Address string `json:"address"`
	// +kubebuilder:validation:Format=uri
	Link string `json:"link,omitempty"`
	// +kubebuilder:validation:Format=date
	Day string `json:"day,omitempty"`
}

// TypeCase says another type than Go has.
type TypeCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=9
	Number int `json:"number"`
}

// CelFieldCase has rules on fields.
type CelFieldCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!self.contains('*')",message="must not contain *"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf"
	Host string `json:"host"`
	// +kubebuilder:validation:XValidation:rule="self > 0",messageExpression="'not ' + string(self)"
	Count int `json:"count"`
}

// CelTypeCase has rules on the whole.
// +kubebuilder:validation:XValidation:rule="self.low <= self.high",message="low is above high",fieldPath=".low"
// +kubebuilder:validation:XValidation:rule="self.low >= 0",reason="FieldValueForbidden"
// +kubebuilder:validation:XValidation:rule="!oldSelf.hasValue() || self.high == oldSelf.value().high",optionalOldSelf=true,message="high stays"
type CelTypeCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Low  int `json:"low"`
	High int `json:"high"`
}

// Span goes from one to another.
// +kubebuilder:validation:XValidation:rule="self.from <= self.to",message="the type's"
type Span struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// CelBothCase has rules on a field and on its type.
type CelBothCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:XValidation:rule="self.to < 100",message="the field's"
	Span Span `json:"span"`
}

// AtMostOneCase has at most one of two.
// +kubebuilder:validation:AtMostOneOf=configMap;secret
type AtMostOneCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	ConfigMap *string `json:"configMap,omitempty"`
	Secret    *string `json:"secret,omitempty"`
}

// ExactlyOneCase has one of three.
// +kubebuilder:validation:ExactlyOneOf=a;b;c
type ExactlyOneCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	A *string `json:"a,omitempty"`
	B *string `json:"b,omitempty"`
	C *string `json:"c,omitempty"`
}

// AtLeastOneCase has one of two, or both.
// +kubebuilder:validation:AtLeastOneOf=a;b
type AtLeastOneCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	A *string `json:"a,omitempty"`
	B *string `json:"b,omitempty"`
}

// OneOfOrderCase has groups of every sort, and a rule.
// +kubebuilder:validation:AtLeastOneOf=e;f
// +kubebuilder:validation:ExactlyOneOf=c;d
// +kubebuilder:validation:AtMostOneOf=a;b
// +kubebuilder:validation:XValidation:rule="true"
type OneOfOrderCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	A *string `json:"a,omitempty"`
	B *string `json:"b,omitempty"`
	C *string `json:"c,omitempty"`
	D *string `json:"d,omitempty"`
	E *string `json:"e,omitempty"`
	F *string `json:"f,omitempty"`
}

// IntOrStringCase has numbers or texts.
type IntOrStringCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Port intstr.IntOrString `json:"port"`
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^\d+%$`
	// +kubebuilder:validation:MaxLength=4
	Share *intstr.IntOrString `json:"share,omitempty"`
	// +kubebuilder:default="25%"
	Surge *intstr.IntOrString `json:"surge,omitempty"`
	// +kubebuilder:default=1
	Count *intstr.IntOrString `json:"count,omitempty"`
}

// Port is one that can be opened.
// +kubebuilder:validation:Minimum=1
// +kubebuilder:validation:Maximum=65535
type Port int32

// NamedTypeCase narrows a type that has bounds of its own.
type NamedTypeCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Any is as the type says.
	Any Port `json:"any"`
	// High begins later.
	// +kubebuilder:validation:Minimum=1024
	High Port `json:"high"`
	// Narrow begins later and ends sooner.
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=2048
	Narrow Port `json:"narrow"`
}
