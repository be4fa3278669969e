package v1

import (
	"k8s.io/apimachinery/pkg/api/resource"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ScalarsCase has all scalars.
type ScalarsCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Flag  bool   `json:"flag"`
	Text  string `json:"text"`
	Int   int    `json:"int"`
	Small int32  `json:"small"`
	Large int64  `json:"large"`
	Raw   []byte `json:"raw"`
}

// ListsCase has lists.
type ListsCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Texts   []string            `json:"texts"`
	Numbers []int32             `json:"numbers"`
	Raw     [][]byte            `json:"raw"`
	Rows    [][]string          `json:"rows"`
	Spans   []Span              `json:"spans"`
	Amounts []resource.Quantity `json:"amounts"`
	Maybe   []*Span             `json:"maybe"`
}

// MapsCase has maps.
type MapsCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Texts   map[string]string            `json:"texts"`
	Numbers map[string]int64             `json:"numbers"`
	Lists   map[string][]string          `json:"lists"`
	Spans   map[string]Span              `json:"spans"`
	Maps    map[string]map[string]bool   `json:"maps"`
	Amounts map[string]resource.Quantity `json:"amounts"`
	Phases  map[Phase]string             `json:"phases"`
}

// PointersCase has fields that may be absent.
type PointersCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Text  *string           `json:"text,omitempty"`
	Flag  *bool             `json:"flag,omitempty"`
	Small *int32            `json:"small,omitempty"`
	Span  *Span             `json:"span,omitempty"`
	List  []string          `json:"list,omitempty"`
	Map   map[string]string `json:"map,omitempty"`
}

// TimesCase has moments and lengths of time.
type TimesCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	At     metav1.Time      `json:"at"`
	Maybe  *metav1.Time     `json:"maybe,omitempty"`
	Micro  metav1.MicroTime `json:"micro"`
	Length metav1.Duration  `json:"length"`
	// +kubebuilder:default="1m30s"
	Wait *metav1.Duration `json:"wait,omitempty"`
}

// QuantityCase has amounts.
type QuantityCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Memory is how much.
	Memory resource.Quantity `json:"memory"`
	// +kubebuilder:default="100m"
	CPU *resource.Quantity `json:"cpu,omitempty"`
}

// Token is a text in JSON.
type Token struct{ text string }

// MarshalText writes it.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.text), nil }

// UnmarshalText reads it.
func (t *Token) UnmarshalText(text []byte) error { t.text = string(text); return nil }

// TextsCase has types that are texts in JSON.
type TextsCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Link is one.
	Link Token `json:"link"`
	// Address is one, too.
	Address *Token `json:"address,omitempty"`
}

// Base is what others build on.
// +kubebuilder:validation:XValidation:rule="self.name != 'x'",message="the base's"
type Base struct {
	// Name is the base's.
	Name string `json:"name"`
	// +kubebuilder:default=1
	Size int `json:"size,omitempty"`
}

// Built builds on the base.
// +kubebuilder:validation:XValidation:rule="self.extra != 'x'",message="its own"
type Built struct {
	Base `json:",inline"`
	// Extra is its own.
	Extra string `json:"extra"`
}

// InlineCase has a type that builds on another.
type InlineCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Built Built `json:"built"`
}

// DocumentedCase has descriptions of every sort.
//
// A second paragraph, which is so long that the writer of the text has to think about how it breaks lines at eighty columns.
// A line that follows: with a colon.
//
// TODO: nobody sees this.
//   - a list
//   - of two
//
// ---
// Nobody sees this either.
type DocumentedCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// A description that is longer than eighty columns and has no line break in it, so that it is folded.
	Long string `json:"long"`
	// Has: a colon, and is longer than eighty columns, so that it is quoted and folded at the same time, isn't it?
	Quoted string `json:"quoted"`
	// "Starts with a quote", # has a hash, and goes on for so long that there is a need to fold it somewhere.
	Hash string `json:"hash"`
	// - looks like a list
	Dash string `json:"dash"`
	// true
	Word string `json:"word"`
	// 12:30:45
	Clock string `json:"clock"`
	// Has a fence:
	// ```
	// TODO stays
	// --- stays
	// ```
	// and an end.
	Fence string `json:"fence"`
	// Grüße, 世界
	Letters string `json:"letters"`
	// Smile 😀 and a text that is long enough to be folded when it is quoted with two quotes, since it has one.
	Smile string `json:"smile"`
	// Supercalifragilisticexpialidociousandmuchmorethanthatsincethereisnoblankanywhereinthiswordofmine
	Unbroken string `json:"unbroken"`
	// Span is a field of a type with a description.
	Span  Span   `json:"span"`
	Other Span   `json:"other"`
	None  string `json:"none"`
}

// QuotingCase has texts that look like something else.
type QuotingCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:Enum="";"yes";"y";"n";"on";"null";"~";"1";"1.5";"1e3";"0x1F";"0o7";"017";"1_000";"2020-01-02";"1:20";"true";"True";"*";"&a";"a: b";"a #b";"-";"- a";".inf";"%";"@a";"`";" a";"a ";"{a";"[a";"!a";"|";">";"a:";"?";"? a";"0b1";"+1";".5";"5.";"NaN";".nan";"é";"a,b";"a'b";"a\"b";"\\";"#";"'";":";":a";"off";"No";"N";"Y";"2020-01-02T03:04:05Z";"1e";"0x";"e3";"-1";"--";"---";"...";"_";"1__0";"_1";"+";"+.inf";"0";"00";"08";"1.";"1.e3";"190:20:30"
	Words string `json:"words"`
	// +kubebuilder:validation:Enum="a\tb";"a\nb";"\n";"a\n";" \n";"a\n\n";" a\nb";"a \nb";"a\n b";"\u00a0";"😀";"null ";"Null";"2020-13-45";"2020-1-2";"2020-01-02 03:04:05";"12345678901234567890123";"0b2";"0x1g";"1e400";"-.5";"-0x1F";"a:b";"a: ";"http://x";"a#b";"--a";"-a";"?a";"'a'";"\"a\"";"a\\nb";"\u0001"
	Others string `json:"others"`
}

// KeysCase has names that sort in an order of their own.
type KeysCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	A10  string `json:"a10"`
	A2   string `json:"a2"`
	A02  string `json:"a02"`
	AB   string `json:"aB"`
	Ab   string `json:"ab"`
	A_b  string `json:"a_b"`
	AX   string `json:"a-x"`
	Yes  string `json:"yes"`
	N1   string `json:"1"`
	True string `json:"true"`
	Dot  string `json:"x.y/z"`
	A100 string `json:"a100b1"`
	A1   string `json:"a100b02"`
}
