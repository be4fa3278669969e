package checks

import (
	"encoding/json"
	"fmt"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var patchChecks = []Check{
	{Name: "patch/json", Run: jsonPatch},
	{Name: "patch/json-test-fails", Run: jsonPatchTestFails},
	{Name: "patch/merge", Run: mergePatch},
	{Name: "patch/strategic", Run: strategicPatch},
	{Name: "patch/strategic-delete", Run: strategicDelete},
	{Name: "patch/apply", Run: applyPatch},
	{Name: "patch/custom", Run: patchCustom},
	{Name: "patch/merge-from", Run: mergeFrom},
	{Name: "patch/optimistic-lock", Run: optimisticLock},
	{Name: "patch/concurrent", Run: concurrentPatches},
	{Name: "patch/nothing-changes", Run: patchWithoutChange},
}

func (t *T) patchMap(kind types.PatchType, patch string) (*corev1.ConfigMap, error) {
	return t.typed().CoreV1().ConfigMaps(t.namespace).Patch(t.ctx, "one", kind, []byte(patch), metav1.PatchOptions{})
}

func (t *T) createMap() {
	t.noError(t.client().Create(t.ctx, t.configMap("one")))
}

func jsonPatch(t *T) {
	t.createMap()
	patched, err := t.patchMap(types.JSONPatchType, `[
		{"op":"test","path":"/data/key","value":"value"},
		{"op":"add","path":"/metadata/annotations","value":{}},
		{"op":"add","path":"/metadata/annotations/example.com~1x","value":"1"},
		{"op":"move","from":"/data/key","path":"/data/moved"},
		{"op":"copy","from":"/data/moved","path":"/data/copied"},
		{"op":"replace","path":"/data/copied","value":"2"}]`)
	t.noError(err)
	t.Expect(patched.Data).To(Equal(map[string]string{"moved": "value", "copied": "2"}))
	t.Expect(patched.Annotations).To(Equal(map[string]string{"example.com/x": "1"}))
}

func jsonPatchTestFails(t *T) {
	t.createMap()
	_, err := t.patchMap(types.JSONPatchType, `[{"op":"test","path":"/data/key","value":"another"}]`)
	t.isTrue(apierrors.IsInvalid(err), "a failed test is answered with %v", err)
	_, err = t.patchMap(types.JSONPatchType, `[{"op":"remove","path":"/data/none"}]`)
	t.isTrue(apierrors.IsInvalid(err), "a path that is not there is answered with %v", err)
	_, err = t.patchMap(types.JSONPatchType, `{"op":"remove"}`)
	t.isTrue(apierrors.IsBadRequest(err), "a patch that is none is answered with %v", err)
}

func mergePatch(t *T) {
	t.createMap()
	patched, err := t.patchMap(types.MergePatchType, `{"data":{"key":null,"other":"1"},"metadata":{"labels":{"a":"b"}}}`)
	t.noError(err)
	t.Expect(patched.Data).To(Equal(map[string]string{"other": "1"}))
	t.Expect(patched.Labels).To(Equal(map[string]string{"a": "b"}))
}

func strategicPatch(t *T) {
	deployments := t.typed().AppsV1().Deployments(t.namespace)
	_, err := deployments.Create(t.ctx, t.deployment("web"), metav1.CreateOptions{})
	t.noError(err)

	patch := `{"spec":{"template":{"spec":{"containers":[
		{"name":"side","image":"registry.example/side:1"},
		{"name":"main","env":[{"name":"A","value":"1"}]}]}}}}`
	patched, err := deployments.Patch(t.ctx, "web", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	t.noError(err)

	containers := map[string]corev1.Container{}
	for _, container := range patched.Spec.Template.Spec.Containers {
		containers[container.Name] = container
	}
	t.Expect(containers).To(HaveLen(2))
	t.Expect(containers["main"].Image).To(Equal("registry.example/main:1"))
	t.Expect(containers["main"].Env).To(Equal([]corev1.EnvVar{{Name: "A", Value: "1"}}))
}

func strategicDelete(t *T) {
	deployments := t.typed().AppsV1().Deployments(t.namespace)
	two := t.deployment("web")
	side := corev1.Container{Name: "side", Image: "registry.example/side:1"}
	two.Spec.Template.Spec.Containers = append(two.Spec.Template.Spec.Containers, side)
	_, err := deployments.Create(t.ctx, two, metav1.CreateOptions{})
	t.noError(err)

	patch := `{"metadata":{"labels":{"app":null}},"spec":{
		"strategy":{"$retainKeys":["type"],"type":"Recreate"},
		"template":{"spec":{"containers":[{"name":"side","$patch":"delete"}]}}}}`
	patched, err := deployments.Patch(t.ctx, "web", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	t.noError(err)
	t.Expect(patched.Labels).To(BeEmpty())
	t.Expect(patched.Spec.Strategy.RollingUpdate).To(BeNil())
	t.Expect(patched.Spec.Template.Spec.Containers).To(HaveLen(1))
}

func applyPatch(t *T) {
	maps := t.typed().CoreV1().ConfigMaps(t.namespace)
	patch := []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\ndata:\n  key: applied\n")
	patched, err := maps.Patch(t.ctx, "one", types.ApplyPatchType, patch, metav1.PatchOptions{FieldManager: "peer"})
	t.noError(err)
	t.Expect(patched.Data).To(Equal(map[string]string{"key": "applied"}))
	t.Expect(patched.ManagedFields).To(HaveLen(1))
	t.Expect(patched.ManagedFields[0].Operation).To(Equal(metav1.ManagedFieldsOperationApply))

	_, err = maps.Patch(t.ctx, "one", types.ApplyPatchType, patch, metav1.PatchOptions{})
	t.Expect(err).To(MatchError(ContainSubstring("fieldManager: Required value: is required for apply patch")))
}

func patchCustom(t *T) {
	t.needWidgets()
	t.noError(t.client().Create(t.ctx, t.widget("one")))
	objects := t.dynamic().Resource(widgetResource).Namespace(t.namespace)
	patch := func(kind types.PatchType, patch string) (map[string]any, error) {
		patched, err := objects.Patch(t.ctx, "one", kind, []byte(patch), metav1.PatchOptions{FieldManager: "peer"})
		if err != nil {
			return nil, err
		}
		return patched.Object["spec"].(map[string]any), nil
	}

	spec, err := patch(types.JSONPatchType, `[{"op":"replace","path":"/spec/size","value":5}]`)
	t.noError(err)
	t.Expect(spec).To(HaveKeyWithValue("size", int64(5)))
	spec, err = patch(types.MergePatchType, `{"spec":{"parts":[{"name":"wheel","count":4}]}}`)
	t.noError(err)
	t.Expect(spec).To(HaveKeyWithValue("parts", HaveLen(1)))
	spec, err = patch(types.ApplyPatchType,
		`{"apiVersion":"peers.example.com/v1","kind":"Widget","spec":{"size":5,"parts":[{"name":"door"}]}}`)
	t.noError(err)
	t.Expect(spec).To(HaveKeyWithValue("parts", HaveLen(2)))
	_, err = patch(types.StrategicMergePatchType, `{"spec":{"size":6}}`)
	t.isTrue(apierrors.IsUnsupportedMediaType(err), "a strategic patch of a custom kind is answered with %v", err)
	_, err = patch(types.MergePatchType, `{"spec":{"size":600}}`)
	t.isTrue(apierrors.IsInvalid(err), "a patch against the schema is answered with %v", err)
}

func mergeFrom(t *T) {
	c := t.client()
	deployment := t.deployment("web")
	t.noError(c.Create(t.ctx, deployment))
	before := deployment.DeepCopy()
	deployment.Spec.Template.Spec.Containers[0].Image = "registry.example/main:2"
	t.noError(c.Patch(t.ctx, deployment, client.StrategicMergeFrom(before)))
	before = deployment.DeepCopy()
	deployment.Annotations = map[string]string{"peer": "yes"}
	t.noError(c.Patch(t.ctx, deployment, client.MergeFrom(before)))

	t.Expect(deployment.Spec.Template.Spec.Containers[0].Image).To(Equal("registry.example/main:2"))
	t.Expect(deployment.Annotations).To(HaveKeyWithValue("peer", "yes"))
}

func optimisticLock(t *T) {
	c := t.client()
	one := t.configMap("one")
	t.noError(c.Create(t.ctx, one))
	stale := one.DeepCopy()
	one.Data["key"] = "fresh"
	t.noError(c.Update(t.ctx, one))

	before := stale.DeepCopy()
	stale.Data["key"] = "stale"
	lock := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	err := c.Patch(t.ctx, stale.DeepCopy(), lock)
	t.isTrue(apierrors.IsConflict(err), "a patch of an old version is answered with %v", err)
	t.noError(c.Patch(t.ctx, stale, client.MergeFrom(before)))
	t.Expect(stale.Data).To(HaveKeyWithValue("key", "stale"))
}

func patchWithoutChange(t *T) {
	t.createMap()
	before, err := t.patchMap(types.MergePatchType, `{"data":{"key":"changed"}}`)
	t.noError(err)
	same, err := json.Marshal(map[string]any{"data": before.Data})
	t.noError(err)
	after, err := t.patchMap(types.MergePatchType, string(same))
	t.noError(err)
	t.Expect(after.ResourceVersion).To(Equal(before.ResourceVersion))
}

// mergePatchOf returns a merge patch for controller-runtime's client.
func mergePatchOf(patch string) client.Patch {
	return client.RawPatch(types.MergePatchType, []byte(patch))
}

// concurrentPatches patches one object by many; none is lost and none is refused, since a patch names no version.
func concurrentPatches(t *T) {
	t.createMap()
	kinds := []types.PatchType{types.MergePatchType, types.StrategicMergePatchType}
	t.together(20, func(number int) {
		_, err := t.patchMap(kinds[number%2], fmt.Sprintf(`{"data":{"key-%d":"1"}}`, number))
		t.noError(err)
	})
	read, err := t.typed().CoreV1().ConfigMaps(t.namespace).Get(t.ctx, "one", metav1.GetOptions{})
	t.noError(err)
	t.Expect(read.Data).To(HaveLen(21))
}
