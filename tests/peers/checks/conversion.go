package checks

import (
	"context"
	"net/http"
	"os"
	"strconv"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	apiconversion "sigs.k8s.io/controller-runtime/pkg/conversion"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"
)

var conversionChecks = []Check{
	{Name: "conversion/webhook", Run: conversionWebhook},
}

const gadgetGroup = "gadgets.example.com"

var (
	gadgetHubKind   = schema.GroupVersionKind{Group: gadgetGroup, Version: "v2", Kind: "Gadget"}
	gadgetSpokeKind = schema.GroupVersionKind{Group: gadgetGroup, Version: "v1", Kind: "Gadget"}
)

// Gadget has two versions; this one is stored. Its weight is a number.
type Gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Weight int `json:"weight"`
}

// Hub implements conversion.Hub.
func (*Gadget) Hub() {}

// DeepCopyObject implements runtime.Object.
func (g *Gadget) DeepCopyObject() runtime.Object {
	made := *g
	g.DeepCopyInto(&made.ObjectMeta)
	return &made
}

// OldGadget is the older version. Its weight is a text.
type OldGadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Weight string `json:"weight"`
}

// DeepCopyObject implements runtime.Object.
func (g *OldGadget) DeepCopyObject() runtime.Object {
	made := *g
	g.DeepCopyInto(&made.ObjectMeta)
	return &made
}

// ConvertTo implements conversion.Convertible.
func (g *OldGadget) ConvertTo(hub apiconversion.Hub) error {
	made := hub.(*Gadget)
	g.DeepCopyInto(&made.ObjectMeta)
	weight, err := strconv.Atoi(g.Weight)
	made.Weight = weight
	return err
}

// ConvertFrom implements conversion.Convertible.
func (g *OldGadget) ConvertFrom(hub apiconversion.Hub) error {
	from := hub.(*Gadget)
	from.DeepCopyInto(&g.ObjectMeta)
	g.Weight = strconv.Itoa(from.Weight)
	return nil
}

// GadgetList is a list of Gadgets.
type GadgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Gadget `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *GadgetList) DeepCopyObject() runtime.Object {
	made := &GadgetList{TypeMeta: l.TypeMeta, ListMeta: *l.DeepCopy()}
	for i := range l.Items {
		made.Items = append(made.Items, *l.Items[i].DeepCopyObject().(*Gadget))
	}
	return made
}

func addGadgets(scheme *runtime.Scheme) error {
	scheme.AddKnownTypeWithName(gadgetHubKind, &Gadget{})
	scheme.AddKnownTypeWithName(gadgetHubKind.GroupVersion().WithKind("GadgetList"), &GadgetList{})
	scheme.AddKnownTypeWithName(gadgetSpokeKind, &OldGadget{})
	metav1.AddToGroupVersion(scheme, gadgetHubKind.GroupVersion())
	metav1.AddToGroupVersion(scheme, gadgetSpokeKind.GroupVersion())
	return nil
}

func gadgetDefinition() *apiextensionsv1.CustomResourceDefinition {
	definition := definitionOf(gadgetHubKind, gadgetHubKind.GroupVersion().WithResource("gadgets"))
	definition.Spec.PreserveUnknownFields = false
	definition.Spec.Versions = append(definition.Spec.Versions, openVersion("v1", false))
	for i, kind := range []string{"integer", "string"} {
		shape := object(map[string]apiextensionsv1.JSONSchemaProps{"weight": {Type: kind}})
		definition.Spec.Versions[i].Schema.OpenAPIV3Schema = &shape
	}
	return definition
}

// installGadgets installs the definition; envtest sees that its versions convert and names our server in it.
func (t *T) installGadgets() {
	options := envtest.WebhookInstallOptions{}
	t.noError(options.PrepWithoutInstalling())
	t.atTheEnd(func(context.Context) { _ = os.RemoveAll(options.LocalServingCertDir) })
	handler := conversion.NewWebhookHandler(scheme, conversion.NewRegistry())
	t.serveHooks(&options, map[string]http.Handler{"/convert": handler})
	definition := gadgetDefinition()
	_, err := envtest.InstallCRDs(t.newConfig(), envtest.CRDInstallOptions{
		Scheme: scheme, CRDs: []*apiextensionsv1.CustomResourceDefinition{definition}, WebhookOptions: options,
	})
	t.noError(err)
	t.uninstallAtTheEnd(definition)
}

func conversionWebhook(t *T) {
	t.installGadgets()
	c := t.client()
	old := &OldGadget{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: t.namespace}, Weight: "7"}
	t.Eventually(func() error { return client.IgnoreAlreadyExists(c.Create(t.ctx, old.DeepCopyObject().(client.Object))) }).Should(Succeed())

	stored := &Gadget{}
	t.noError(c.Get(t.ctx, client.ObjectKeyFromObject(old), stored))
	t.Expect(stored.Weight).To(Equal(7))
	stored.Weight = 8
	t.noError(c.Update(t.ctx, stored))
	t.noError(c.Get(t.ctx, client.ObjectKeyFromObject(old), old))
	t.Expect(old.Weight).To(Equal("8"))
	t.noError(c.Create(t.ctx, &Gadget{ObjectMeta: metav1.ObjectMeta{Name: "two", Namespace: t.namespace}, Weight: 1}))

	olds := t.dynamic().Resource(gadgetSpokeKind.GroupVersion().WithResource("gadgets")).Namespace(t.namespace)
	list, err := olds.List(t.ctx, metav1.ListOptions{})
	t.noError(err)
	t.Expect(list.Items).To(HaveLen(2))
	for _, item := range list.Items {
		t.Expect(item.GetAPIVersion()).To(Equal(gadgetSpokeKind.GroupVersion().String()))
		t.Expect(item.Object["weight"]).To(BeAssignableToTypeOf(""))
	}
	watcher, err := olds.Watch(t.ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	t.noError(err)
	defer watcher.Stop()
	t.noError(c.Delete(t.ctx, stored))
	t.expectEvents(watcher, followed{"DELETED", "one"})
}
