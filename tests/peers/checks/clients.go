package checks

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var clientChecks = []Check{
	{Name: "client/typed", Run: typedLifecycle},
	{Name: "client/typed-defaults", Run: typedDefaults},
	{Name: "client/protobuf-is-spoken", Run: protobufIsSpoken},
	{Name: "client/protobuf-equals-json", Run: protobufEqualsJSON},
	{Name: "client/dynamic-core", Run: dynamicCore},
	{Name: "client/dynamic-custom", Run: dynamicCustom},
	{Name: "client/metadata-core", Run: metadataCore},
	{Name: "client/metadata-custom", Run: metadataCustom},
	{Name: "client/runtime-typed", Run: runtimeTyped},
	{Name: "client/runtime-unstructured", Run: runtimeUnstructured},
	{Name: "client/runtime-metadata", Run: runtimeMetadata},
	{Name: "client/generated-name", Run: generatedName},
	{Name: "client/concurrent-updates", Run: concurrentUpdates},
	{Name: "client/timeout-parameter", Run: timeoutParameter},
	{Name: "client/stale-update", Run: staleUpdate},
	{Name: "client/delete-preconditions", Run: deletePreconditions},
	{Name: "client/delete-collection", Run: deleteCollection},
	{Name: "client/finalizer-holds-the-object", Run: finalizerHolds},
	{Name: "client/dry-run", Run: dryRun},
	{Name: "client/dry-run-wrapper", Run: dryRunWrapper},
	{Name: "client/warnings", Run: warnings},
	{Name: "client/field-validation", Run: fieldValidation},
}

var (
	configMapResource  = corev1.SchemeGroupVersion.WithResource("configmaps")
	deploymentResource = appsv1.SchemeGroupVersion.WithResource("deployments")
)

func (t *T) configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: t.namespace},
		Data:       map[string]string{"key": "value"},
	}
}

func (t *T) configMapTree(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata":   map[string]any{"name": name, "namespace": t.namespace},
		"data":       map[string]any{"key": "value"},
	}}
}

// deployment returns a Deployment of no Pods, so that nothing runs where there is somebody to run it.
func (t *T) deployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: t.namespace, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(0)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example/main:1"}}},
			},
		},
	}
}

func typedLifecycle(t *T) {
	maps := t.typed().CoreV1().ConfigMaps(t.namespace)

	made, err := maps.Create(t.ctx, t.configMap("one"), metav1.CreateOptions{})
	t.noError(err)
	t.Expect(made.UID).NotTo(BeEmpty())
	t.Expect(made.ResourceVersion).NotTo(BeEmpty())
	t.Expect(made.CreationTimestamp.IsZero()).To(BeFalse())

	read, err := maps.Get(t.ctx, "one", metav1.GetOptions{})
	t.noError(err)
	t.Expect(read).To(Equal(made))

	read.Data["key"] = "other"
	updated, err := maps.Update(t.ctx, read, metav1.UpdateOptions{})
	t.noError(err)
	t.Expect(updated.Data).To(HaveKeyWithValue("key", "other"))
	t.Expect(updated.ResourceVersion).NotTo(Equal(made.ResourceVersion))

	list, err := maps.List(t.ctx, metav1.ListOptions{LabelSelector: "!kubernetes.io/none", FieldSelector: "metadata.name=one"})
	t.noError(err)
	t.Expect(list.Items).To(ConsistOf(*updated))

	t.noError(maps.Delete(t.ctx, "one", metav1.DeleteOptions{}))
	_, err = maps.Get(t.ctx, "one", metav1.GetOptions{})
	t.isTrue(apierrors.IsNotFound(err), "a deleted ConfigMap is read with %v", err)
}

func typedDefaults(t *T) {
	made, err := t.typed().AppsV1().Deployments(t.namespace).Create(t.ctx, t.deployment("web"), metav1.CreateOptions{})
	t.noError(err)

	t.Expect(made.Generation).To(Equal(int64(1)))
	t.Expect(made.Spec.Strategy.Type).To(Equal(appsv1.RollingUpdateDeploymentStrategyType))
	t.Expect(made.Spec.Strategy.RollingUpdate.MaxSurge.String()).To(Equal("25%"))
	t.Expect(made.Spec.RevisionHistoryLimit).To(HaveValue(Equal(int32(10))))
	pod := made.Spec.Template.Spec
	t.Expect(pod.RestartPolicy).To(Equal(corev1.RestartPolicyAlways))
	t.Expect(pod.SchedulerName).To(Equal(corev1.DefaultSchedulerName))
	t.Expect(pod.Containers[0].ImagePullPolicy).To(Equal(corev1.PullIfNotPresent))
	t.Expect(pod.Containers[0].TerminationMessagePath).To(Equal("/dev/termination-log"))
}

func protobufIsSpoken(t *T) {
	config := t.newConfig()
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	spoken := &contentTypes{}
	config.Wrap(spoken.watch)

	_, err := t.typedOf(config).CoreV1().ConfigMaps(t.namespace).Create(t.ctx, t.configMap("one"), metav1.CreateOptions{})
	t.noError(err)

	t.Expect(spoken.sent).To(Equal([]string{runtime.ContentTypeProtobuf}))
	t.Expect(spoken.received).To(HaveLen(1))
	t.Expect(spoken.received[0]).To(Or(HavePrefix(runtime.ContentTypeProtobuf), HavePrefix(runtime.ContentTypeJSON)))
}

// contentTypes remembers what was sent and received.
type contentTypes struct {
	mutex          sync.Mutex
	sent, received []string
}

func (c *contentTypes) watch(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err != nil {
			return nil, err
		}
		c.mutex.Lock()
		defer c.mutex.Unlock()
		c.sent = append(c.sent, request.Header.Get("Content-Type"))
		c.received = append(c.received, response.Header.Get("Content-Type"))
		return response, nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

func protobufEqualsJSON(t *T) {
	binary, text := t.typed(), t.typedOf(t.newConfig())
	_, err := binary.AppsV1().Deployments(t.namespace).Create(t.ctx, t.deployment("binary"), metav1.CreateOptions{})
	t.noError(err)
	_, err = text.AppsV1().Deployments(t.namespace).Create(t.ctx, t.deployment("text"), metav1.CreateOptions{})
	t.noError(err)

	for _, name := range []string{"binary", "text"} {
		t.Eventually(func(g Gomega) { // a controller may write in between
			one, err := binary.AppsV1().Deployments(t.namespace).Get(t.ctx, name, metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			other, err := text.AppsV1().Deployments(t.namespace).Get(t.ctx, name, metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(one).To(Equal(other))
		}).Should(Succeed())
	}
}

func dynamicCore(t *T) {
	t.dynamicLifecycle(configMapResource, t.configMapTree("one"), "data", "key")
}

func dynamicCustom(t *T) {
	t.needWidgets()
	tree := t.widgetTree("one")
	t.dynamicLifecycle(widgetResource, tree, "spec", "color")
}

// dynamicLifecycle creates, reads, changes, lists and deletes an object; the field is a text.
func (t *T) dynamicLifecycle(resource schema.GroupVersionResource, tree *unstructured.Unstructured, field ...string) {
	objects := t.dynamic().Resource(resource).Namespace(t.namespace)

	made, err := objects.Create(t.ctx, tree, metav1.CreateOptions{})
	t.noError(err)
	t.Expect(made.GetUID()).NotTo(BeEmpty())

	read, err := objects.Get(t.ctx, tree.GetName(), metav1.GetOptions{})
	t.noError(err)
	t.Expect(read.Object).To(Equal(made.Object))

	t.noError(unstructured.SetNestedField(read.Object, "other", field...))
	updated, err := objects.Update(t.ctx, read, metav1.UpdateOptions{})
	t.noError(err)
	value, _, _ := unstructured.NestedString(updated.Object, field...)
	t.Expect(value).To(Equal("other"))

	list, err := objects.List(t.ctx, metav1.ListOptions{})
	t.noError(err)
	t.Expect(list.GetResourceVersion()).NotTo(BeEmpty())
	t.Expect(names(list.Items)).To(ContainElement(tree.GetName()))

	t.noError(objects.Delete(t.ctx, tree.GetName(), metav1.DeleteOptions{}))
	_, err = objects.Get(t.ctx, tree.GetName(), metav1.GetOptions{})
	t.isTrue(apierrors.IsNotFound(err), "a deleted object is read with %v", err)
}

func names(items []unstructured.Unstructured) []string {
	var found []string
	for i := range items {
		found = append(found, items[i].GetName())
	}
	return found
}

func metadataCore(t *T) {
	t.metadataLifecycle(configMapResource, t.configMapTree("one"))
}

func metadataCustom(t *T) {
	t.needWidgets()
	t.metadataLifecycle(widgetResource, t.widgetTree("one"))
}

func (t *T) metadataLifecycle(resource schema.GroupVersionResource, tree *unstructured.Unstructured) {
	_, err := t.dynamic().Resource(resource).Namespace(t.namespace).Create(t.ctx, tree, metav1.CreateOptions{})
	t.noError(err)
	objects := t.metadata().Resource(resource).Namespace(t.namespace)

	read, err := objects.Get(t.ctx, tree.GetName(), metav1.GetOptions{})
	t.noError(err)
	t.Expect(read.Name).To(Equal(tree.GetName()))
	t.Expect(read.ResourceVersion).NotTo(BeEmpty())

	patch := []byte(`{"metadata":{"labels":{"peer":"yes"}}}`)
	patched, err := objects.Patch(t.ctx, tree.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
	t.noError(err)
	t.Expect(patched.Labels).To(HaveKeyWithValue("peer", "yes"))

	list, err := objects.List(t.ctx, metav1.ListOptions{LabelSelector: "peer=yes"})
	t.noError(err)
	t.Expect(list.Items).To(HaveLen(1))
	t.Expect(list.Items[0].UID).To(Equal(read.UID))

	t.noError(objects.Delete(t.ctx, tree.GetName(), metav1.DeleteOptions{}))
	_, err = objects.Get(t.ctx, tree.GetName(), metav1.GetOptions{})
	t.isTrue(apierrors.IsNotFound(err), "deleted metadata is read with %v", err)
}

func runtimeTyped(t *T) {
	t.needWidgets()
	c := t.client()
	widget := t.widget("one")

	t.noError(c.Create(t.ctx, widget))
	t.Expect(widget.Generation).To(Equal(int64(1)))
	widget.Spec.Size = 4
	t.noError(c.Update(t.ctx, widget))
	t.Expect(widget.Generation).To(Equal(int64(2)))

	read := &Widget{}
	t.noError(c.Get(t.ctx, client.ObjectKeyFromObject(widget), read))
	t.Expect(read.Spec).To(Equal(widget.Spec))
	list := &WidgetList{}
	t.noError(c.List(t.ctx, list, client.InNamespace(t.namespace)))
	t.Expect(list.Items).To(HaveLen(1))

	t.noError(c.Delete(t.ctx, widget))
	t.isTrue(apierrors.IsNotFound(c.Get(t.ctx, client.ObjectKeyFromObject(widget), read)), "the Widget is gone")
}

func runtimeUnstructured(t *T) {
	t.needWidgets()
	c := t.client()
	tree := t.widgetTree("one")

	t.noError(c.Create(t.ctx, tree))
	t.noError(unstructured.SetNestedField(tree.Object, "red", "spec", "color"))
	t.noError(c.Update(t.ctx, tree))

	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(widgetVersion.WithKind("WidgetList"))
	t.noError(c.List(t.ctx, list, client.InNamespace(t.namespace)))
	t.Expect(list.Items).To(HaveLen(1))
	t.Expect(list.Items[0].Object).To(HaveKeyWithValue("spec", HaveKeyWithValue("color", "red")))
	t.noError(c.DeleteAllOf(t.ctx, tree, client.InNamespace(t.namespace)))
	t.noError(c.List(t.ctx, list, client.InNamespace(t.namespace)))
	t.Expect(list.Items).To(BeEmpty())
}

func runtimeMetadata(t *T) {
	t.needWidgets()
	c := t.client()
	t.noError(c.Create(t.ctx, t.widget("one")))

	only := &metav1.PartialObjectMetadata{}
	only.SetGroupVersionKind(widgetKind)
	t.noError(c.Get(t.ctx, client.ObjectKey{Namespace: t.namespace, Name: "one"}, only))
	t.Expect(only.GroupVersionKind()).To(Equal(widgetKind))
	t.Expect(only.Generation).To(Equal(int64(1)))
	before := only.DeepCopy()
	only.Annotations = map[string]string{"peer": "yes"}
	t.noError(c.Patch(t.ctx, only, client.MergeFrom(before)))

	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(widgetVersion.WithKind("WidgetList"))
	t.noError(c.List(t.ctx, list, client.InNamespace(t.namespace)))
	t.Expect(list.Items).To(HaveLen(1))
	t.Expect(list.Items[0].Annotations).To(HaveKeyWithValue("peer", "yes"))
}

func generatedName(t *T) {
	one, other := t.configMap(""), t.configMap("")
	one.GenerateName, other.GenerateName = "made-", "made-"
	c := t.client()
	t.noError(c.Create(t.ctx, one))
	t.noError(c.Create(t.ctx, other))
	t.Expect(one.Name).To(MatchRegexp("^made-[a-z0-9]{5}$"))
	t.Expect(other.Name).NotTo(Equal(one.Name))
}

func staleUpdate(t *T) {
	c := t.client()
	fresh := t.configMap("one")
	t.noError(c.Create(t.ctx, fresh))
	stale := fresh.DeepCopy()
	fresh.Data["key"] = "fresh"
	t.noError(c.Update(t.ctx, fresh))

	stale.Data["key"] = "stale"
	err := c.Update(t.ctx, stale)
	t.isTrue(apierrors.IsConflict(err), "a stale update is answered with %v", err)
	t.Expect(err.Error()).To(ContainSubstring("the object has been modified"))

	stale.ResourceVersion = "" // without a version the last writer wins
	t.noError(c.Update(t.ctx, stale))
}

// concurrentUpdates counts by many writers; each tries again when another was first.
func concurrentUpdates(t *T) {
	counter := t.configMap("one")
	counter.Data["count"] = "0"
	t.noError(t.client().Create(t.ctx, counter))
	maps := t.typed().CoreV1().ConfigMaps(t.namespace)
	t.together(10, func(int) {
		often := wait.Backoff{Steps: 100, Duration: time.Millisecond, Jitter: 1}
		t.noError(retry.RetryOnConflict(often, func() error {
			current, err := maps.Get(t.ctx, "one", metav1.GetOptions{})
			if err != nil {
				return err
			}
			count, err := strconv.Atoi(current.Data["count"])
			if err != nil {
				return err
			}
			current.Data["count"] = strconv.Itoa(count + 1)
			_, err = maps.Update(t.ctx, current, metav1.UpdateOptions{})
			return err
		}))
	})
	read, err := maps.Get(t.ctx, "one", metav1.GetOptions{})
	t.noError(err)
	t.Expect(read.Data).To(HaveKeyWithValue("count", "10"))
}

func timeoutParameter(t *T) {
	t.createMap()
	read := &corev1.ConfigMap{}
	request := t.raw().Get().AbsPath("/api/v1/namespaces", t.namespace, "configmaps", "one")
	t.noError(request.Timeout(5 * time.Second).Do(t.ctx).Into(read))
	t.Expect(read.Name).To(Equal("one"))
}

func deletePreconditions(t *T) {
	maps := t.typed().CoreV1().ConfigMaps(t.namespace)
	made, err := maps.Create(t.ctx, t.configMap("one"), metav1.CreateOptions{})
	t.noError(err)

	wrongUID := metav1.Preconditions{UID: new(types.UID("another"))}
	err = maps.Delete(t.ctx, "one", metav1.DeleteOptions{Preconditions: &wrongUID})
	t.isTrue(apierrors.IsConflict(err), "a delete with another UID is answered with %v", err)
	wrongVersion := metav1.Preconditions{ResourceVersion: new("1")}
	err = maps.Delete(t.ctx, "one", metav1.DeleteOptions{Preconditions: &wrongVersion})
	t.isTrue(apierrors.IsConflict(err), "a delete with an old version is answered with %v", err)

	right := metav1.Preconditions{UID: &made.UID, ResourceVersion: &made.ResourceVersion}
	t.noError(maps.Delete(t.ctx, "one", metav1.DeleteOptions{Preconditions: &right}))
}

func deleteCollection(t *T) {
	maps := t.typed().CoreV1().ConfigMaps(t.namespace)
	for _, name := range []string{"red-1", "red-2", "blue"} {
		one := t.configMap(name)
		one.Labels = map[string]string{"color": strings.Split(name, "-")[0]}
		_, err := maps.Create(t.ctx, one, metav1.CreateOptions{})
		t.noError(err)
	}

	t.noError(maps.DeleteCollection(t.ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "color=red"}))

	left, err := maps.List(t.ctx, metav1.ListOptions{LabelSelector: "color"})
	t.noError(err)
	t.Expect(left.Items).To(HaveLen(1))
	t.Expect(left.Items[0].Name).To(Equal("blue"))
}

func finalizerHolds(t *T) {
	c := t.client()
	held := t.configMap("held")
	held.Finalizers = []string{"peers.example.com/hold"}
	t.noError(c.Create(t.ctx, held))

	t.noError(c.Delete(t.ctx, held))
	t.noError(c.Get(t.ctx, client.ObjectKeyFromObject(held), held))
	t.Expect(held.DeletionTimestamp).NotTo(BeNil())
	t.Expect(held.DeletionGracePeriodSeconds).To(HaveValue(Equal(int64(0))))

	held.Finalizers = append(held.Finalizers, "peers.example.com/late")
	err := c.Update(t.ctx, held)
	t.isTrue(apierrors.IsInvalid(err), "a finalizer added to a deleted object is answered with %v", err)

	held.Finalizers = nil
	t.noError(c.Update(t.ctx, held))
	t.isTrue(apierrors.IsNotFound(c.Get(t.ctx, client.ObjectKeyFromObject(held), held)), "the object is gone")
}

func dryRun(t *T) {
	maps := t.typed().CoreV1().ConfigMaps(t.namespace)
	dry := []string{metav1.DryRunAll}

	tried, err := maps.Create(t.ctx, t.configMap("tried"), metav1.CreateOptions{DryRun: dry})
	t.noError(err)
	t.Expect(tried.UID).NotTo(BeEmpty())
	_, err = maps.Get(t.ctx, "tried", metav1.GetOptions{})
	t.isTrue(apierrors.IsNotFound(err), "a dry run creates nothing; the read gave %v", err)

	made, err := maps.Create(t.ctx, t.configMap("one"), metav1.CreateOptions{})
	t.noError(err)
	changed := made.DeepCopy()
	changed.Data["key"] = "other"
	updated, err := maps.Update(t.ctx, changed, metav1.UpdateOptions{DryRun: dry})
	t.noError(err)
	t.Expect(updated.Data).To(HaveKeyWithValue("key", "other"))
	patch := []byte(`{"data":{"key":"patched"}}`)
	patched, err := maps.Patch(t.ctx, "one", types.MergePatchType, patch, metav1.PatchOptions{DryRun: dry})
	t.noError(err)
	t.Expect(patched.Data).To(HaveKeyWithValue("key", "patched"))
	t.noError(maps.Delete(t.ctx, "one", metav1.DeleteOptions{DryRun: dry}))

	read, err := maps.Get(t.ctx, "one", metav1.GetOptions{})
	t.noError(err)
	t.Expect(read).To(Equal(made))
}

func dryRunWrapper(t *T) {
	t.needWidgets()
	c := t.client()
	dry := client.NewDryRunClient(c)

	t.noError(dry.Create(t.ctx, t.widget("one")))
	t.isTrue(apierrors.IsNotFound(c.Get(t.ctx, client.ObjectKey{Namespace: t.namespace, Name: "one"}, &Widget{})), "nothing was made")

	widget := t.widget("one")
	t.noError(c.Create(t.ctx, widget))
	tried := widget.DeepCopyObject().(*Widget)
	tried.Status.Ready = true
	t.noError(dry.Status().Update(t.ctx, tried))
	t.Expect(tried.Status.Ready).To(BeTrue())
	t.noError(dry.Delete(t.ctx, tried))
	t.noError(c.Get(t.ctx, client.ObjectKeyFromObject(widget), widget))
	t.Expect(widget.Status.Ready).To(BeFalse())
}

func warnings(t *T) {
	t.needWidgets()
	heard := &warningList{}
	config := t.newConfig()
	config.WarningHandler = heard

	_, err := t.typedOf(config).CoreV1().Endpoints(t.namespace).List(t.ctx, metav1.ListOptions{})
	t.noError(err)
	t.Expect(heard.all()).To(ConsistOf(ContainSubstring("v1 Endpoints is deprecated in v1.33+")))

	tree := t.widgetTree("one")
	t.noError(unstructured.SetNestedField(tree.Object, "x", "spec", "shape"))
	t.noError(client.WithFieldValidation(t.clientOf(config), metav1.FieldValidationWarn).Create(t.ctx, tree))
	t.Expect(heard.all()).To(ContainElement(`unknown field "spec.shape"`))
	t.Expect(tree.Object["spec"]).NotTo(HaveKey("shape"))
}

// warningList is a rest.WarningHandler that remembers.
type warningList struct {
	mutex sync.Mutex
	texts []string
}

func (w *warningList) HandleWarningHeader(code int, _ string, text string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if code == 299 {
		w.texts = append(w.texts, text)
	}
}

// HandleWarningHeaderWithContext is the form that controller-runtime's own handler has.
func (w *warningList) HandleWarningHeaderWithContext(_ context.Context, code int, agent, text string) {
	w.HandleWarningHeader(code, agent, text)
}

func (w *warningList) all() []string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return append([]string(nil), w.texts...)
}

func fieldValidation(t *T) {
	tree := t.configMapTree("one")
	t.noError(unstructured.SetNestedField(tree.Object, "x", "shape"))
	strict := client.WithFieldValidation(t.client(), metav1.FieldValidationStrict)
	err := strict.Create(t.ctx, tree.DeepCopy())
	t.isTrue(apierrors.IsBadRequest(err), "an unknown field is answered with %v", err)
	t.Expect(err.Error()).To(ContainSubstring(`unknown field "shape"`))

	lax := client.WithFieldValidation(t.client(), metav1.FieldValidationIgnore)
	t.noError(lax.Create(t.ctx, tree))
}
