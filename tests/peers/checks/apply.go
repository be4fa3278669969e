package checks

import (
	"fmt"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var applyChecks = []Check{
	{Name: "apply/create-and-change", Run: applyCreatesAndChanges},
	{Name: "apply/conflict", Run: applyConflict},
	{Name: "apply/force", Run: applyForce},
	{Name: "apply/shared-ownership", Run: applyShared},
	{Name: "apply/relinquish", Run: applyRelinquish},
	{Name: "apply/list-by-key", Run: applyListByKey},
	{Name: "apply/extract", Run: applyExtract},
	{Name: "apply/status", Run: applyStatus},
	{Name: "apply/dynamic", Run: applyDynamic},
	{Name: "apply/runtime-client", Run: applyRuntimeClient},
	{Name: "apply/many-managers", Run: applyByMany},
	{Name: "apply/no-change", Run: applyWithoutChange},
	{Name: "apply/upgrade-from-update", Run: upgradeFromUpdate},
	{Name: "apply/managed-fields-reset", Run: managedFieldsReset},
	{Name: "apply/managed-fields-of-update", Run: managedFieldsOfUpdate},
}

func (t *T) mapConfiguration(data map[string]string) *corev1ac.ConfigMapApplyConfiguration {
	return corev1ac.ConfigMap("one", t.namespace).WithData(data)
}

func (t *T) applyMap(manager string, data map[string]string) (*corev1.ConfigMap, error) {
	maps := t.typed().CoreV1().ConfigMaps(t.namespace)
	return maps.Apply(t.ctx, t.mapConfiguration(data), metav1.ApplyOptions{FieldManager: manager})
}

// webConfiguration returns what deployment returns, as an apply configuration.
func (t *T) webConfiguration(image string) *appsv1ac.DeploymentApplyConfiguration {
	labels := map[string]string{"app": "web"}
	container := corev1ac.Container().WithName("main").WithImage(image)
	return appsv1ac.Deployment("web", t.namespace).WithLabels(labels).WithSpec(appsv1ac.DeploymentSpec().
		WithReplicas(0).
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(labels)).
		WithTemplate(corev1ac.PodTemplateSpec().WithLabels(labels).
			WithSpec(corev1ac.PodSpec().WithContainers(container))))
}

func applyCreatesAndChanges(t *T) {
	made, err := t.applyMap("one", map[string]string{"a": "1", "b": "1"})
	t.noError(err)
	t.Expect(made.Data).To(Equal(map[string]string{"a": "1", "b": "1"}))

	changed, err := t.applyMap("one", map[string]string{"a": "2"})
	t.noError(err)
	t.Expect(changed.UID).To(Equal(made.UID))
	t.Expect(changed.Data).To(Equal(map[string]string{"a": "2"}), "what is not applied again is given up and removed")
}

func applyConflict(t *T) {
	_, err := t.applyMap("one", map[string]string{"a": "1"})
	t.noError(err)
	_, err = t.applyMap("other", map[string]string{"a": "2"})

	t.isTrue(apierrors.IsConflict(err), "an apply over another manager is answered with %v", err)
	t.Expect(err.Error()).To(ContainSubstring(`conflict with "one": .data.a`))
	t.isTrue(apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict), "the cause is in %#v", err)
}

func applyForce(t *T) {
	_, err := t.applyMap("one", map[string]string{"a": "1", "b": "1"})
	t.noError(err)
	maps := t.typed().CoreV1().ConfigMaps(t.namespace)
	force := metav1.ApplyOptions{FieldManager: "other", Force: true}
	forced, err := maps.Apply(t.ctx, t.mapConfiguration(map[string]string{"a": "2"}), force)
	t.noError(err)
	t.Expect(forced.Data).To(Equal(map[string]string{"a": "2", "b": "1"}))

	extracted, err := corev1ac.ExtractConfigMap(forced, "one")
	t.noError(err)
	t.Expect(extracted.Data).To(Equal(map[string]string{"b": "1"}), "the field has passed to the other manager")
}

func applyShared(t *T) {
	_, err := t.applyMap("one", map[string]string{"a": "1"})
	t.noError(err)
	shared, err := t.applyMap("other", map[string]string{"a": "1"})
	t.noError(err)
	t.Expect(shared.ManagedFields).To(HaveLen(2), "the same value is no conflict")

	kept, err := t.applyMap("other", nil)
	t.noError(err)
	t.Expect(kept.Data).To(HaveKeyWithValue("a", "1"), "the first manager still owns it")
}

func applyRelinquish(t *T) {
	_, err := t.applyMap("one", map[string]string{"a": "1", "b": "1"})
	t.noError(err)
	_, err = t.applyMap("other", map[string]string{"c": "1"})
	t.noError(err)
	left, err := t.applyMap("one", nil)
	t.noError(err)
	t.Expect(left.Data).To(Equal(map[string]string{"c": "1"}))
}

func applyListByKey(t *T) {
	deployments := t.typed().AppsV1().Deployments(t.namespace)
	_, err := deployments.Apply(t.ctx, t.webConfiguration("registry.example/main:1"), metav1.ApplyOptions{FieldManager: "one"})
	t.noError(err)
	side := appsv1ac.Deployment("web", t.namespace).WithSpec(appsv1ac.DeploymentSpec().
		WithTemplate(corev1ac.PodTemplateSpec().WithSpec(corev1ac.PodSpec().
			WithContainers(corev1ac.Container().WithName("side").WithImage("registry.example/side:1")))))
	both, err := deployments.Apply(t.ctx, side, metav1.ApplyOptions{FieldManager: "other"})
	t.noError(err)
	t.Expect(both.Spec.Template.Spec.Containers).To(HaveLen(2))

	changed, err := deployments.Apply(t.ctx, t.webConfiguration("registry.example/main:2"), metav1.ApplyOptions{FieldManager: "one"})
	t.noError(err)
	t.Expect(changed.Spec.Template.Spec.Containers).To(HaveLen(2))
	t.Expect(changed.Spec.Template.Spec.Containers[0].Image).To(Equal("registry.example/main:2"))
}

func applyExtract(t *T) {
	deployments := t.typed().AppsV1().Deployments(t.namespace)
	options := metav1.ApplyOptions{FieldManager: "one"}
	given := t.webConfiguration("registry.example/main:1")
	made, err := deployments.Apply(t.ctx, given, options)
	t.noError(err)

	extracted, err := appsv1ac.ExtractDeployment(made, "one")
	t.noError(err)
	t.Expect(extracted).To(Equal(given), "what is extracted is what was applied, without the defaults")

	extracted.Spec.WithMinReadySeconds(7)
	changed, err := deployments.Apply(t.ctx, extracted, options)
	t.noError(err)
	t.Expect(changed.Spec.MinReadySeconds).To(Equal(int32(7)))
	t.Expect(changed.Generation).To(Equal(made.Generation + 1))
}

func applyStatus(t *T) {
	t.needWidgets()
	c := t.client()
	t.noError(c.Create(t.ctx, t.widget("one")))
	status := t.widgetTree("one")
	status.Object["spec"] = map[string]any{"size": int64(9)}
	status.Object["status"] = map[string]any{"ready": true}
	configuration := client.ApplyConfigurationFromUnstructured(status)
	t.noError(c.Status().Apply(t.ctx, configuration, client.FieldOwner("one")))

	read := &Widget{}
	t.noError(c.Get(t.ctx, client.ObjectKey{Namespace: t.namespace, Name: "one"}, read))
	t.Expect(read.Status.Ready).To(BeTrue())
	t.Expect(read.Spec.Size).To(Equal(int32(3)), "the status endpoint leaves the spec")
	managed := map[string]string{}
	for _, entry := range read.ManagedFields {
		managed[entry.Manager] = entry.Subresource
	}
	t.Expect(managed).To(HaveKeyWithValue("one", "status"))
}

func applyDynamic(t *T) {
	t.needWidgets()
	objects := t.dynamic().Resource(widgetResource).Namespace(t.namespace)
	tree := t.widgetTree("one")
	tree.Object["spec"] = map[string]any{"size": int64(3), "parts": []any{map[string]any{"name": "wheel", "count": int64(4)}}}
	_, err := objects.Apply(t.ctx, "one", tree, metav1.ApplyOptions{FieldManager: "one"})
	t.noError(err)

	tree.Object["spec"] = map[string]any{"size": int64(4), "parts": []any{map[string]any{"name": "wheel", "count": int64(3)}}}
	_, err = objects.Apply(t.ctx, "one", tree, metav1.ApplyOptions{FieldManager: "other"})
	t.isTrue(apierrors.IsConflict(err), "an apply over another manager is answered with %v", err)
	t.Expect(err.Error()).To(And(ContainSubstring(".spec.size"), ContainSubstring(`.spec.parts[name="wheel"].count`)))

	made, err := objects.Apply(t.ctx, "one", tree, metav1.ApplyOptions{FieldManager: "other", Force: true})
	t.noError(err)
	size, _, _ := unstructured.NestedInt64(made.Object, "spec", "size")
	t.Expect(size).To(Equal(int64(4)))
}

func applyRuntimeClient(t *T) {
	t.needWidgets()
	c := t.client()
	owner := client.FieldOwner("one")
	t.noError(c.Apply(t.ctx, t.mapConfiguration(map[string]string{"a": "1"}), owner))
	tree := t.widgetTree("one")
	t.noError(c.Apply(t.ctx, client.ApplyConfigurationFromUnstructured(tree), owner))
	t.Expect(tree.GetUID()).NotTo(BeEmpty(), "the configuration takes up what the server answers")

	err := c.Apply(t.ctx, t.mapConfiguration(map[string]string{"a": "2"}), client.FieldOwner("other"))
	t.isTrue(apierrors.IsConflict(err), "an apply over another manager is answered with %v", err)
	t.noError(c.Apply(t.ctx, t.mapConfiguration(map[string]string{"a": "2"}), client.FieldOwner("other"), client.ForceOwnership))
	read := &corev1.ConfigMap{}
	t.noError(c.Get(t.ctx, client.ObjectKey{Namespace: t.namespace, Name: "one"}, read))
	t.Expect(read.Data).To(HaveKeyWithValue("a", "2"))
}

func applyWithoutChange(t *T) {
	made, err := t.applyMap("one", map[string]string{"a": "1"})
	t.noError(err)
	again, err := t.applyMap("one", map[string]string{"a": "1"})
	t.noError(err)
	t.Expect(again.ResourceVersion).To(Equal(made.ResourceVersion))
}

func managedFieldsOfUpdate(t *T) {
	c := client.WithFieldOwner(t.client(), "writer")
	one := t.configMap("one")
	t.noError(c.Create(t.ctx, one))
	t.Expect(one.ManagedFields).To(HaveLen(1))
	entry := one.ManagedFields[0]
	t.Expect(entry.Manager).To(Equal("writer"))
	t.Expect(entry.Operation).To(Equal(metav1.ManagedFieldsOperationUpdate))
	t.Expect(entry.FieldsType).To(Equal("FieldsV1"))
	t.Expect(entry.FieldsV1.String()).To(MatchJSON(`{"f:data":{".":{},"f:key":{}}}`))

	_, err := t.applyMap("applier", map[string]string{"key": "another"})
	t.isTrue(apierrors.IsConflict(err), "an apply over an update is answered with %v", err)
	t.Expect(err.Error()).To(ContainSubstring(`conflict with "writer" using v1: .data.key`))
}

// upgradeFromUpdate moves the fields of an updating manager to an applying one, as operators do that change over.
func upgradeFromUpdate(t *T) {
	c := client.WithFieldOwner(t.client(), "writer")
	one := t.configMap("one")
	t.noError(c.Create(t.ctx, one))
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(one, sets.New("writer"), "applier")
	t.noError(err)
	t.noError(c.Patch(t.ctx, one, client.RawPatch(types.JSONPatchType, patch)))
	t.Expect(one.ManagedFields).To(HaveLen(1))
	t.Expect(one.ManagedFields[0].Manager).To(Equal("applier"))
	t.Expect(one.ManagedFields[0].Operation).To(Equal(metav1.ManagedFieldsOperationApply))

	applied, err := t.applyMap("applier", map[string]string{"other": "1"})
	t.noError(err)
	t.Expect(applied.Data).To(Equal(map[string]string{"other": "1"}))
}

func managedFieldsReset(t *T) {
	_, err := t.applyMap("one", map[string]string{"a": "1"})
	t.noError(err)
	reset, err := t.patchMap(types.MergePatchType, `{"metadata":{"managedFields":[{}]}}`)
	t.noError(err)
	t.Expect(reset.ManagedFields).To(BeEmpty())
	_, err = t.applyMap("other", map[string]string{"a": "2"})
	t.isTrue(apierrors.IsConflict(err), "an apply over fields of nobody is answered with %v", err)
	t.Expect(err.Error()).To(ContainSubstring(`conflict with "before-first-apply" using v1: .data.a`))
}

// applyByMany lets many managers apply a field each, at once, on an object that none of them has made.
func applyByMany(t *T) {
	t.together(5, func(number int) {
		name := fmt.Sprintf("manager-%d", number)
		_, err := t.applyMap(name, map[string]string{name: "1"})
		t.noError(err)
	})
	read, err := t.typed().CoreV1().ConfigMaps(t.namespace).Get(t.ctx, "one", metav1.GetOptions{})
	t.noError(err)
	t.Expect(read.Data).To(HaveLen(5))
	t.Expect(read.ManagedFields).To(HaveLen(5))
}
