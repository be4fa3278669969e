package checks

import (
	"context"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var watchChecks = []Check{
	{Name: "watch/events", Run: watchEvents},
	{Name: "watch/from-a-version", Run: watchFromVersion},
	{Name: "watch/initial-events", Run: watchInitialEvents},
	{Name: "watch/label-selector", Run: watchLabelSelector},
	{Name: "watch/field-selector", Run: watchFieldSelector},
	{Name: "watch/ends-in-time", Run: watchEndsInTime},
	{Name: "watch/expired", Run: watchExpired},
	{Name: "watch/metadata-only", Run: watchMetadata},
	{Name: "watch/custom", Run: watchCustom},
	{Name: "watch/one-namespace", Run: watchOneNamespace},
	{Name: "watch/all-namespaces", Run: watchAllNamespaces},
	{Name: "watch/retry-watcher", Run: retryWatcher},
	{Name: "watch/until-with-sync", Run: untilWithSync},
}

// followed is an event of a watch, as text that compares.
type followed struct {
	Type watch.EventType
	Name string
}

// next returns the next event that is no bookmark.
func (t *T) next(watcher watch.Interface) watch.Event {
	for {
		select {
		case event, open := <-watcher.ResultChan():
			t.isTrue(open, "the watch has ended")
			if event.Type != watch.Bookmark {
				return event
			}
		case <-time.After(eventually):
			t.isTrue(false, "no event within %s", eventually)
		}
	}
}

// expectEvents compares the next events with the wanted ones.
func (t *T) expectEvents(watcher watch.Interface, wanted ...followed) {
	for _, want := range wanted {
		event := t.next(watcher)
		t.Expect(followed{event.Type, nameOf(event.Object)}).To(Equal(want))
	}
}

func nameOf(object runtime.Object) string {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err.Error()
	}
	return accessor.GetName()
}

// watchMaps watches ConfigMaps from now on, or from the version in the options.
func (t *T) watchMaps(options metav1.ListOptions) watch.Interface {
	maps := t.typed().CoreV1().ConfigMaps(t.namespace)
	if options.ResourceVersion == "" && options.SendInitialEvents == nil {
		list, err := maps.List(t.ctx, metav1.ListOptions{})
		t.noError(err)
		options.ResourceVersion = list.ResourceVersion
	}
	watcher, err := maps.Watch(t.ctx, options)
	t.noError(err)
	t.atTheEnd(func(context.Context) { watcher.Stop() })
	return watcher
}

// notTheAuthority leaves out the ConfigMap that a controller puts into each namespace.
const notTheAuthority = "metadata.name!=kube-root-ca.crt"

func watchEvents(t *T) {
	watcher := t.watchMaps(metav1.ListOptions{FieldSelector: notTheAuthority})
	c := t.client()
	one := t.configMap("one")
	t.noError(c.Create(t.ctx, one))
	one.Data["key"] = "other"
	t.noError(c.Update(t.ctx, one))
	t.noError(c.Delete(t.ctx, one))

	t.expectEvents(watcher, followed{watch.Added, "one"})
	modified := t.next(watcher)
	t.Expect(modified.Object.(*corev1.ConfigMap).Data).To(HaveKeyWithValue("key", "other"))
	t.Expect(modified.Object.(*corev1.ConfigMap).ResourceVersion).To(Equal(one.ResourceVersion))
	deleted := t.next(watcher)
	t.Expect(deleted.Type).To(Equal(watch.Deleted))
	t.Expect(deleted.Object.(*corev1.ConfigMap).ResourceVersion).NotTo(Equal(one.ResourceVersion),
		"a deletion has a version of its own")
}

func watchFromVersion(t *T) {
	c := t.client()
	one := t.configMap("one")
	t.noError(c.Create(t.ctx, one))
	t.noError(c.Create(t.ctx, t.configMap("two")))
	t.noError(c.Delete(t.ctx, one.DeepCopy()))

	watcher := t.watchMaps(metav1.ListOptions{ResourceVersion: one.ResourceVersion, FieldSelector: notTheAuthority})
	t.expectEvents(watcher, followed{watch.Added, "two"}, followed{watch.Deleted, "one"})
}

func watchInitialEvents(t *T) {
	t.createMaps(3)
	watcher := t.watchMaps(metav1.ListOptions{
		SendInitialEvents:    new(true),
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		AllowWatchBookmarks:  true,
		FieldSelector:        notTheAuthority,
	})
	initial := []string{}
	for {
		var event watch.Event
		t.Eventually(watcher.ResultChan()).Should(Receive(&event))
		object := event.Object.(*corev1.ConfigMap)
		if event.Type == watch.Bookmark {
			t.Expect(object.Annotations).To(HaveKeyWithValue(metav1.InitialEventsAnnotationKey, "true"))
			t.Expect(object.ResourceVersion).NotTo(BeEmpty())
			break
		}
		t.Expect(event.Type).To(Equal(watch.Added))
		initial = append(initial, object.Name)
	}
	t.Expect(initial).To(ConsistOf("map-00", "map-01", "map-02"))

	t.noError(t.client().Create(t.ctx, t.configMap("later")))
	t.expectEvents(watcher, followed{watch.Added, "later"})
}

func watchLabelSelector(t *T) {
	watcher := t.watchMaps(metav1.ListOptions{LabelSelector: "color=red"})
	c := t.client()
	one := t.configMap("one")
	t.noError(c.Create(t.ctx, one))
	for _, color := range []string{"red", "blue", "red"} {
		one.Labels = map[string]string{"color": color}
		t.noError(c.Update(t.ctx, one))
	}
	t.noError(c.Delete(t.ctx, one))

	t.expectEvents(watcher, followed{watch.Added, "one"})
	left := t.next(watcher)
	t.Expect(left.Type).To(Equal(watch.Deleted))
	t.Expect(left.Object.(*corev1.ConfigMap).Labels).To(HaveKeyWithValue("color", "red"), "as it was when it still matched")
	t.expectEvents(watcher, followed{watch.Added, "one"}, followed{watch.Deleted, "one"})
}

func watchFieldSelector(t *T) {
	watcher := t.watchMaps(metav1.ListOptions{FieldSelector: "metadata.name=two"})
	t.noError(t.client().Create(t.ctx, t.configMap("one")))
	t.noError(t.client().Create(t.ctx, t.configMap("two")))
	t.expectEvents(watcher, followed{watch.Added, "two"})
}

func watchEndsInTime(t *T) {
	began := time.Now()
	watcher := t.watchMaps(metav1.ListOptions{TimeoutSeconds: new(int64(1)), LabelSelector: "none=such"})
	t.Eventually(watcher.ResultChan(), "5s").Should(BeClosed())
	t.Expect(time.Since(began)).To(BeNumerically(">", 500*time.Millisecond))
}

func watchExpired(t *T) {
	t.needWidgets() // they came after version 1, which a server that has just begun may still have for other kinds
	watcher, err := t.dynamic().Resource(widgetResource).Watch(t.ctx, metav1.ListOptions{ResourceVersion: "1"})
	if err == nil {
		defer watcher.Stop()
		event := t.next(watcher)
		t.Expect(event.Type).To(Equal(watch.Error))
		err = apierrors.FromObject(event.Object)
	}
	t.isTrue(apierrors.IsResourceExpired(err), "a watch of version 1 is answered with %v", err)
	t.Expect(err.Error()).To(ContainSubstring("too old resource version: 1"))
}

func watchMetadata(t *T) {
	maps := t.metadata().Resource(configMapResource).Namespace(t.namespace)
	list, err := maps.List(t.ctx, metav1.ListOptions{})
	t.noError(err)
	watcher, err := maps.Watch(t.ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion, FieldSelector: "metadata.name=one"})
	t.noError(err)
	defer watcher.Stop()
	one := t.configMap("one")
	one.Labels = map[string]string{"color": "red"}
	t.noError(t.client().Create(t.ctx, one))

	event := t.next(watcher)
	only, is := event.Object.(*metav1.PartialObjectMetadata)
	t.isTrue(is, "the watch gives %T", event.Object)
	t.Expect(only.UID).To(Equal(one.UID))
	t.Expect(only.Labels).To(Equal(one.Labels))
}

func watchCustom(t *T) {
	t.needWidgets()
	c := t.client()
	list := &WidgetList{}
	t.noError(c.List(t.ctx, list, client.InNamespace(t.namespace)))
	watcher, err := c.Watch(t.ctx, list, client.InNamespace(t.namespace), &client.ListOptions{
		Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion},
	})
	t.noError(err)
	defer watcher.Stop()
	one := t.widget("one")
	t.noError(c.Create(t.ctx, one))
	t.noError(c.Patch(t.ctx, one, mergePatchOf(`{"spec":{"size":4}}`)))
	t.noError(c.Delete(t.ctx, one))
	t.expectEvents(watcher, followed{watch.Added, "one"}, followed{watch.Modified, "one"}, followed{watch.Deleted, "one"})
}

// watchOneNamespace writes in two namespaces, before and after the watch begins, and sees one of them.
func watchOneNamespace(t *T) {
	c, other := t.client(), t.newNamespace()
	list, err := t.typed().CoreV1().ConfigMaps(t.namespace).List(t.ctx, metav1.ListOptions{})
	t.noError(err)
	writeBoth := func(name string) {
		elsewhere := t.configMap("not-" + name)
		elsewhere.Namespace = other
		t.noError(c.Create(t.ctx, elsewhere))
		t.noError(c.Create(t.ctx, t.configMap(name)))
	}
	writeBoth("before")
	watcher := t.watchMaps(metav1.ListOptions{ResourceVersion: list.ResourceVersion, FieldSelector: notTheAuthority})
	writeBoth("after")
	t.expectEvents(watcher, followed{watch.Added, "before"}, followed{watch.Added, "after"})
}

func watchAllNamespaces(t *T) {
	maps := t.typed().CoreV1().ConfigMaps(metav1.NamespaceAll)
	list, err := maps.List(t.ctx, metav1.ListOptions{})
	t.noError(err)
	selector := "metadata.namespace=" + t.namespace + "," + notTheAuthority
	watcher, err := maps.Watch(t.ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion, FieldSelector: selector})
	t.noError(err)
	defer watcher.Stop()
	t.noError(t.client().Create(t.ctx, t.configMap("one")))
	t.expectEvents(watcher, followed{watch.Added, "one"})
}

// mapSource lists and watches the ConfigMaps of the check's namespace.
func (t *T) mapSource() *cache.ListWatch {
	maps := t.typed().CoreV1().ConfigMaps(t.namespace)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return maps.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return maps.Watch(ctx, options)
		},
	}
}

func retryWatcher(t *T) {
	maps := t.typed().CoreV1().ConfigMaps(t.namespace)
	list, err := maps.List(t.ctx, metav1.ListOptions{})
	t.noError(err)
	source := counted(t.mapSource(), true, func(_ int32, options *metav1.ListOptions) {
		options.TimeoutSeconds = new(int64(1)) // so that the server ends the watch soon
		options.FieldSelector = notTheAuthority
	})
	watcher, err := watchtools.NewRetryWatcherWithContext(t.ctx, list.ResourceVersion, source)
	t.noError(err)
	defer watcher.Stop()
	for number, name := range []string{"a", "b", "c"} {
		t.Eventually(source.watches.Load).Should(BeNumerically(">", number))
		t.noError(t.client().Create(t.ctx, t.configMap(name)))
		t.expectEvents(watcher, followed{watch.Added, name})
	}
}

func untilWithSync(t *T) {
	t.createMaps(1)
	go func() {
		_, _ = t.typed().CoreV1().ConfigMaps(t.namespace).Patch(
			t.ctx, "map-00", types.MergePatchType, []byte(`{"data":{"ready":"yes"}}`), metav1.PatchOptions{},
		)
	}()
	event, err := watchtools.UntilWithSync(t.ctx, t.mapSource(), &corev1.ConfigMap{}, nil, func(event watch.Event) (bool, error) {
		object, is := event.Object.(*corev1.ConfigMap)
		return is && object.Data["ready"] == "yes", nil
	})
	t.noError(err)
	t.Expect(nameOf(event.Object)).To(Equal("map-00"))
}
