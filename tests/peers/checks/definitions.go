package checks

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"
)

var definitionChecks = []Check{
	{Name: "definition/envtest-installs-files", Run: installFiles},
	{Name: "definition/conditions", Run: definitionConditions},
	{Name: "definition/defaults-and-pruning", Run: defaultsAndPruning},
	{Name: "definition/validation-causes", Run: validationCauses},
	{Name: "definition/rules", Run: validationRules},
	{Name: "definition/deprecated-version-warns", Run: deprecatedVersion},
	{Name: "definition/deletion-ends-the-objects", Run: definitionDeletion},
	{Name: "definition/two-versions", Run: twoVersions},
	{Name: "definition/cluster-scoped", Run: clusterScoped},
	{Name: "definition/numbers", Run: numbers},
	{Name: "definition/refused", Run: definitionRefused},
}

func (t *T) uninstallAtTheEnd(definition *apiextensionsv1.CustomResourceDefinition) {
	c, gone := t.client(), &apiextensionsv1.CustomResourceDefinition{}
	gone.Name = definition.Name
	t.atTheEnd(func(ctx context.Context) { _ = c.Delete(ctx, gone) })
}

func installFiles(t *T) {
	kind, resource := t.ownKind("Thing")
	definition := definitionOf(kind, resource)
	definition.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	content, err := yaml.Marshal(definition)
	t.noError(err)
	folder, err := os.MkdirTemp("", "peers-")
	t.noError(err)
	t.atTheEnd(func(context.Context) { _ = os.RemoveAll(folder) })
	t.noError(os.WriteFile(filepath.Join(folder, "things.yaml"), content, 0o600))
	t.uninstallAtTheEnd(definition)

	options := envtest.CRDInstallOptions{Paths: []string{folder}, ErrorIfPathMissing: true, MaxTime: eventually}
	installed, err := envtest.InstallCRDs(t.newConfig(), options)
	t.noError(err)
	t.Expect(installed).To(HaveLen(1))
	_, err = envtest.InstallCRDs(t.newConfig(), options)
	t.noError(err) // a second time it is an update
	// kube-apiserver 1.36 can keep a definition that is deleted before its storage is ready: the finalizer's first try fails,
	// the second conflicts with what the first wrote, and the third comes with the resync, minutes later.
	things := t.dynamic().Resource(resource)
	t.Eventually(func() error { _, err := things.List(t.ctx, metav1.ListOptions{}); return err }).Should(Succeed())
	t.noError(envtest.UninstallCRDs(t.newConfig(), options))
	c, left := t.client(), &apiextensionsv1.CustomResourceDefinition{}
	t.Eventually(func() error {
		err := c.Get(t.ctx, client.ObjectKeyFromObject(definition), left)
		if err == nil {
			return fmt.Errorf("it is still there: %v, %+v", left.DeletionTimestamp, left.Status.Conditions)
		}
		return err
	}).Should(Satisfy(apierrors.IsNotFound))
}

func definitionConditions(t *T) {
	kind, resource := t.ownKind("Thing")
	definition := definitionOf(kind, resource)
	t.install(definition)
	t.noError(t.client().Get(t.ctx, client.ObjectKeyFromObject(definition), definition))
	conditions := map[apiextensionsv1.CustomResourceDefinitionConditionType]apiextensionsv1.ConditionStatus{}
	for _, condition := range definition.Status.Conditions {
		conditions[condition.Type] = condition.Status
	}
	t.Expect(conditions).To(HaveKeyWithValue(apiextensionsv1.Established, apiextensionsv1.ConditionTrue))
	t.Expect(conditions).To(HaveKeyWithValue(apiextensionsv1.NamesAccepted, apiextensionsv1.ConditionTrue))
	t.Expect(definition.Status.AcceptedNames.Singular).To(Equal("thing"))
	t.Expect(definition.Status.StoredVersions).To(Equal([]string{"v1"}))
}

func defaultsAndPruning(t *T) {
	t.needWidgets()
	tree := t.widgetTree("one")
	t.noError(unstructured.SetNestedField(tree.Object, "x", "spec", "unknown"))
	t.noError(unstructured.SetNestedField(tree.Object, true, "status", "ready"))
	t.noError(t.client().Create(t.ctx, tree))
	t.Expect(tree.Object["spec"]).To(Equal(map[string]any{"size": int64(3), "color": "grey"}))
	t.Expect(tree.Object).NotTo(HaveKey("status"), "a create does not write the status")
}

func validationCauses(t *T) {
	t.needWidgets()
	tree := t.widgetTree("one")
	tree.Object["spec"] = map[string]any{"size": int64(101), "color": int64(1), "parts": []any{
		map[string]any{"name": "wheel"}, map[string]any{"name": "wheel"},
	}}
	err := t.client().Create(t.ctx, tree)
	t.isTrue(apierrors.IsInvalid(err), "an object against the schema is answered with %v", err)
	t.Expect(causes(err)).To(HaveKeyWithValue("spec.size", metav1.CauseTypeFieldValueInvalid))
	t.Expect(causes(err)).To(HaveKeyWithValue("spec.color", metav1.CauseType("FieldValueTypeInvalid")))
	t.Expect(err.Error()).To(ContainSubstring(`Widget.peers.example.com "one" is invalid`))

	err = t.client().Create(t.ctx, withSpec(t.widgetTree("one"), map[string]any{}))
	t.Expect(causes(err)).To(Equal(map[string]metav1.CauseType{"spec.size": metav1.CauseTypeFieldValueRequired}))
}

func withSpec(tree *unstructured.Unstructured, spec map[string]any) *unstructured.Unstructured {
	tree.Object["spec"] = spec
	return tree
}

// causes returns the type of each field's cause.
func causes(err error) map[string]metav1.CauseType {
	found := map[string]metav1.CauseType{}
	if status, is := err.(apierrors.APIStatus); is && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			found[cause.Field] = cause.Type
		}
	}
	return found
}

func validationRules(t *T) {
	kind, resource := t.ownKind("Thing")
	definition := definitionOf(kind, resource)
	spec := object(map[string]apiextensionsv1.JSONSchemaProps{
		"least": {Type: "integer"},
		"most":  {Type: "integer"},
		"class": {Type: "string", MaxLength: new(int64(10)), XValidations: apiextensionsv1.ValidationRules{
			{Rule: "self == oldSelf", Message: "class is for good"},
		}},
	})
	spec.XValidations = apiextensionsv1.ValidationRules{
		{Rule: "self.least <= self.most", MessageExpression: "'no order in class ' + self.class"},
	}
	shape := object(map[string]apiextensionsv1.JSONSchemaProps{"spec": spec})
	definition.Spec.Versions[0].Schema.OpenAPIV3Schema = &shape
	t.install(definition)
	c := t.client()
	thing := t.widgetTree("one")
	thing.SetGroupVersionKind(kind)

	err := c.Create(t.ctx, withSpec(thing.DeepCopy(), map[string]any{"least": int64(3), "most": int64(2), "class": "a"}))
	t.isTrue(apierrors.IsInvalid(err), "an object against a rule is answered with %v", err)
	t.Expect(err.Error()).To(ContainSubstring("no order in class a"))

	t.noError(c.Create(t.ctx, withSpec(thing, map[string]any{"least": int64(1), "most": int64(2), "class": "a"})))
	err = c.Patch(t.ctx, thing.DeepCopy(), mergePatchOf(`{"spec":{"class":"b"}}`))
	t.isTrue(apierrors.IsInvalid(err), "a change against a rule is answered with %v", err)
	t.Expect(err.Error()).To(ContainSubstring("spec.class: Invalid value: \"b\": class is for good"))
}

func deprecatedVersion(t *T) {
	kind, resource := t.ownKind("Thing")
	definition := definitionOf(kind, resource)
	definition.Spec.Versions[0].Deprecated = true
	definition.Spec.Versions[0].DeprecationWarning = new("Things are of yesterday")
	t.install(definition)
	heard := &warningList{}
	config := t.newConfig()
	config.WarningHandler = heard
	thing := t.widgetTree("one")
	thing.SetGroupVersionKind(kind)
	t.noError(t.clientOf(config).Create(t.ctx, thing))
	t.Expect(heard.all()).To(ConsistOf("Things are of yesterday"))
}

func definitionDeletion(t *T) {
	kind, resource := t.ownKind("Thing")
	definition := definitionOf(kind, resource)
	t.install(definition)
	thing := t.widgetTree("one")
	thing.SetGroupVersionKind(kind)
	objects := t.dynamic().Resource(resource).Namespace(t.namespace)
	made, err := objects.Create(t.ctx, thing, metav1.CreateOptions{})
	t.noError(err)
	watcher, err := objects.Watch(t.ctx, metav1.ListOptions{ResourceVersion: made.GetResourceVersion()})
	t.noError(err)
	defer watcher.Stop()

	t.noError(t.client().Delete(t.ctx, definition))
	t.expectEvents(watcher, followed{"DELETED", "one"})
	t.Eventually(func() bool {
		_, err := objects.List(t.ctx, metav1.ListOptions{})
		return apierrors.IsNotFound(err)
	}).Should(BeTrue())
}

func twoVersions(t *T) {
	kind, resource := t.ownKind("Thing")
	definition := definitionOf(kind, resource)
	definition.Spec.Versions = append(definition.Spec.Versions, openVersion("v2", false))
	t.install(definition)
	thing := t.widgetTree("one")
	thing.SetGroupVersionKind(kind)
	made, err := t.dynamic().Resource(resource).Namespace(t.namespace).Create(t.ctx, thing, metav1.CreateOptions{})
	t.noError(err)

	newer := t.dynamic().Resource(resource.GroupResource().WithVersion("v2")).Namespace(t.namespace)
	read, err := newer.Get(t.ctx, "one", metav1.GetOptions{})
	t.noError(err)
	t.Expect(read.GetAPIVersion()).To(Equal(kind.Group + "/v2"))
	t.Expect(read.GetUID()).To(Equal(made.GetUID()))
	list, err := newer.List(t.ctx, metav1.ListOptions{})
	t.noError(err)
	t.Expect(list.GetAPIVersion()).To(Equal(kind.Group + "/v2"))
	t.Expect(list.Items[0].GetAPIVersion()).To(Equal(kind.Group + "/v2"))
}

func definitionRefused(t *T) {
	kind, resource := t.ownKind("Thing")
	misnamed := definitionOf(kind, resource)
	misnamed.Name = "other." + kind.Group
	schemaless := definitionOf(kind, resource)
	schemaless.Spec.Versions[0].Schema = nil
	stored := definitionOf(kind, resource)
	stored.Spec.Versions = append(stored.Spec.Versions, openVersion("v2", true))
	broken := definitionOf(kind, resource)
	broken.Spec.Versions[0].Schema.OpenAPIV3Schema.XValidations = apiextensionsv1.ValidationRules{{Rule: "self.("}}
	for field, definition := range map[string]*apiextensionsv1.CustomResourceDefinition{
		"metadata.name": misnamed,
		"spec.versions[0].schema.openAPIV3Schema": schemaless,
		"spec.versions": stored,
		"spec.validation.openAPIV3Schema.x-kubernetes-validations[0].rule": broken,
	} {
		err := t.client().Create(t.ctx, definition)
		t.isTrue(apierrors.IsInvalid(err), "%s: a wrong definition is answered with %v", field, err)
		t.Expect(causes(err)).To(HaveKey(field))
	}
}

func clusterScoped(t *T) {
	kind, resource := t.ownKind("Thing")
	definition := definitionOf(kind, resource)
	definition.Spec.Scope = apiextensionsv1.ClusterScoped
	t.install(definition)
	c := t.client()
	thing := t.widgetTree("one")
	thing.SetGroupVersionKind(kind)
	thing.SetNamespace("")
	t.noError(c.Create(t.ctx, thing))
	namespaced, err := c.IsObjectNamespaced(thing)
	t.noError(err)
	t.Expect(namespaced).To(BeFalse())
	_, err = t.dynamic().Resource(resource).Namespace(t.namespace).Get(t.ctx, "one", metav1.GetOptions{})
	t.isTrue(apierrors.IsNotFound(err), "in a namespace it is answered with %v", err)
	_, err = t.dynamic().Resource(resource).Get(t.ctx, "one", metav1.GetOptions{})
	t.noError(err)
}

// numbers come back as they were sent: whole ones whole, beyond what a float holds.
func numbers(t *T) {
	kind, resource := t.ownKind("Thing")
	t.install(definitionOf(kind, resource))
	thing := t.widgetTree("one")
	thing.SetGroupVersionKind(kind)
	spec := map[string]any{"most": int64(math.MaxInt64), "odd": int64(1<<53 + 1), "part": 0.1, "none": false, "text": "<\u2028&é😀>"}
	t.noError(t.client().Create(t.ctx, withSpec(thing, spec)))
	read, err := t.dynamic().Resource(resource).Namespace(t.namespace).Get(t.ctx, "one", metav1.GetOptions{})
	t.noError(err)
	t.Expect(read.Object["spec"]).To(Equal(spec))
}
