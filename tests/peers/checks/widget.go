package checks

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// widgets is the custom kind most checks use: one version, with status and scale.
var (
	widgetVersion  = schema.GroupVersion{Group: "peers.example.com", Version: "v1"}
	widgetKind     = widgetVersion.WithKind("Widget")
	widgetResource = widgetVersion.WithResource("widgets")
)

// Widget is a thing of some size and colour.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WidgetSpec   `json:"spec"`
	Status WidgetStatus `json:"status,omitempty"`
}

// WidgetSpec is what is wanted.
type WidgetSpec struct {
	Size  int32        `json:"size"`
	Color string       `json:"color,omitempty"`
	Parts []WidgetPart `json:"parts,omitempty"`
}

// WidgetPart is one of the things a Widget consists of; its name is its key.
type WidgetPart struct {
	Name  string `json:"name"`
	Count int32  `json:"count,omitempty"`
}

// WidgetStatus is what is.
type WidgetStatus struct {
	Size       int32              `json:"size,omitempty"`
	Ready      bool               `json:"ready,omitempty"`
	Paint      string             `json:"paint,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// WidgetList is a list of Widgets.
type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Widget `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (w *Widget) DeepCopyObject() runtime.Object {
	made := *w
	w.DeepCopyInto(&made.ObjectMeta)
	made.Spec.Parts = append([]WidgetPart(nil), w.Spec.Parts...)
	made.Status.Conditions = append([]metav1.Condition(nil), w.Status.Conditions...)
	return &made
}

// DeepCopyObject implements runtime.Object.
func (l *WidgetList) DeepCopyObject() runtime.Object {
	made := &WidgetList{TypeMeta: l.TypeMeta, ListMeta: *l.DeepCopy()}
	for i := range l.Items {
		made.Items = append(made.Items, *l.Items[i].DeepCopyObject().(*Widget))
	}
	return made
}

func addWidgets(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(widgetVersion, &Widget{}, &WidgetList{})
	metav1.AddToGroupVersion(scheme, widgetVersion)
	return nil
}

func (t *T) widget(name string) *Widget {
	return &Widget{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: t.namespace},
		Spec:       WidgetSpec{Size: 3, Color: "grey"},
	}
}

func (t *T) widgetTree(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": widgetVersion.String(),
		"kind":       widgetKind.Kind,
		"metadata":   map[string]any{"name": name, "namespace": t.namespace},
		"spec":       map[string]any{"size": int64(3)},
	}}
}

func widgetDefinition() *apiextensionsv1.CustomResourceDefinition {
	definition := definitionOf(widgetKind, widgetResource)
	version := &definition.Spec.Versions[0]
	version.Schema.OpenAPIV3Schema = widgetSchema()
	version.SelectableFields = []apiextensionsv1.SelectableField{{JSONPath: ".spec.color"}}
	version.Subresources = &apiextensionsv1.CustomResourceSubresources{
		Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
		Scale: &apiextensionsv1.CustomResourceSubresourceScale{
			SpecReplicasPath:   ".spec.size",
			StatusReplicasPath: ".status.size",
		},
	}
	return definition
}

func widgetSchema() *apiextensionsv1.JSONSchemaProps {
	part := object(map[string]apiextensionsv1.JSONSchemaProps{
		"name":  {Type: "string"},
		"count": {Type: "integer", Format: "int32"},
	}, "name")
	spec := object(map[string]apiextensionsv1.JSONSchemaProps{
		"size":  {Type: "integer", Format: "int32", Minimum: new(0.0), Maximum: new(100.0)},
		"color": {Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"grey"`)}},
		"parts": {
			Type:         "array",
			Items:        &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &part},
			XListType:    new("map"),
			XListMapKeys: []string{"name"},
		},
	}, "size")
	status := object(map[string]apiextensionsv1.JSONSchemaProps{
		"size":  {Type: "integer", Format: "int32"},
		"ready": {Type: "boolean"},
		"paint": {Type: "string"},
		"conditions": {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{
			Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)},
		}},
	})
	whole := object(map[string]apiextensionsv1.JSONSchemaProps{"spec": spec, "status": status}, "spec")
	return &whole
}

func object(properties map[string]apiextensionsv1.JSONSchemaProps, required ...string) apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: properties, Required: required}
}

// definitionOf returns the definition of a namespaced kind with one version, whose objects may hold anything.
func definitionOf(kind schema.GroupVersionKind, resource schema.GroupVersionResource) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: resource.GroupResource().String()},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: kind.Group,
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Kind: kind.Kind, ListKind: kind.Kind + "List", Plural: resource.Resource,
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{openVersion(kind.Version, true)},
		},
	}
}

// openVersion returns a served version without rules.
func openVersion(name string, storage bool) apiextensionsv1.CustomResourceDefinitionVersion {
	return apiextensionsv1.CustomResourceDefinitionVersion{
		Name:    name,
		Served:  true,
		Storage: storage,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
			Type: "object", XPreserveUnknownFields: new(true),
		}},
	}
}
