package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var groupVersion = schema.GroupVersion{Group: "bench.example.com", Version: "v1"}

// Widget is the custom resource of the benchmark.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WidgetSpec   `json:"spec,omitempty"`
	Status WidgetStatus `json:"status,omitempty"`
}

// WidgetSpec is what somebody wants.
type WidgetSpec struct {
	Size     int32             `json:"size,omitempty"`
	Image    string            `json:"image,omitempty"`
	Args     []string          `json:"args,omitempty"`
	Env      []Variable        `json:"env,omitempty"`
	Selector map[string]string `json:"selector,omitempty"`
}

// Variable is a name and its value.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
}

// WidgetStatus is what there is.
type WidgetStatus struct {
	Nodes []string `json:"nodes,omitempty"`
}

// WidgetList is a list of them.
type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Widget `json:"items"`
}

func (w *Widget) DeepCopyInto(out *Widget) {
	*out = *w
	w.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	w.Spec.deepCopyInto(&out.Spec)
	if w.Status.Nodes != nil {
		out.Status.Nodes = append([]string{}, w.Status.Nodes...)
	}
}

func (s *WidgetSpec) deepCopyInto(out *WidgetSpec) {
	if s.Args != nil {
		out.Args = make([]string, len(s.Args))
		copy(out.Args, s.Args)
	}
	if s.Env != nil {
		out.Env = make([]Variable, len(s.Env))
		copy(out.Env, s.Env)
	}
	if s.Selector != nil {
		out.Selector = make(map[string]string, len(s.Selector))
		for key, value := range s.Selector {
			out.Selector[key] = value
		}
	}
}

func (w *Widget) DeepCopy() *Widget {
	out := new(Widget)
	w.DeepCopyInto(out)
	return out
}

func (w *Widget) DeepCopyObject() runtime.Object { return w.DeepCopy() }

func (l *WidgetList) DeepCopyObject() runtime.Object {
	out := &WidgetList{TypeMeta: l.TypeMeta, Items: make([]Widget, len(l.Items))}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range l.Items {
		l.Items[i].DeepCopyInto(&out.Items[i])
	}
	return out
}

func addKinds(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(groupVersion, &Widget{}, &WidgetList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
}
