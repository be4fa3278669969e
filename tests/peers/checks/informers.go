package checks

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	runtimecache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var informerChecks = []Check{
	{Name: "informer/watch-list", Run: func(t *T) { followWithInformer(t, true) }},
	{Name: "informer/list-and-watch", Run: func(t *T) { followWithInformer(t, false) }},
	{Name: "informer/busy-watch-list", Run: func(t *T) { followBusyNamespace(t, true) }},
	{Name: "informer/busy-list-and-watch", Run: func(t *T) { followBusyNamespace(t, false) }},
	{Name: "informer/broken-watch-goes-on", Run: brokenWatchGoesOn},
	{Name: "informer/expired-watch-lists-again", Run: expiredWatchListsAgain},
	{Name: "informer/factory", Run: informerFactory},
	{Name: "informer/factory-with-selector", Run: informerFactoryWithSelector},
	{Name: "informer/dynamic", Run: dynamicInformer},
	{Name: "informer/metadata", Run: metadataInformer},
	{Name: "informer/runtime-cache", Run: runtimeCache},
	{Name: "informer/runtime-cache-selectors", Run: runtimeCacheSelectors},
	{Name: "informer/runtime-cache-two-namespaces", Run: runtimeCacheTwoNamespaces},
	{Name: "informer/runtime-cache-metadata", Run: runtimeCacheMetadata},
}

// source is a ListerWatcher whose requests are counted, with the watch-list protocol on or off.
type source struct {
	*cache.ListWatch
	watchList bool
	lists     atomic.Int32
	watches   atomic.Int32
}

// IsWatchListSemanticsUnSupported is where the reflector asks whether it may fetch the first state by a watch.
func (s *source) IsWatchListSemanticsUnSupported() bool { return !s.watchList }

// counted returns the source with its requests counted. The change, if there is one, sees each watch before it begins,
// with its number from 1.
func counted(plain *cache.ListWatch, watchList bool, change func(number int32, options *metav1.ListOptions)) *source {
	counted := &source{ListWatch: &cache.ListWatch{}, watchList: watchList}
	counted.ListWithContextFunc = func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		counted.lists.Add(1)
		return plain.ListWithContextFunc(ctx, options)
	}
	counted.WatchFuncWithContext = func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		number := counted.watches.Add(1)
		if change != nil {
			change(number, &options)
		}
		return plain.WatchFuncWithContext(ctx, options)
	}
	return counted
}

// history is what a handler was told, object by object.
type history struct {
	mutex sync.Mutex
	told  map[string][]string
}

func (h *history) add(object any, what string) {
	if gone, is := object.(cache.DeletedFinalStateUnknown); is {
		object = gone.Obj
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.told == nil {
		h.told = map[string][]string{}
	}
	name := nameOf(object.(runtime.Object))
	h.told[name] = append(h.told[name], what)
}

func (h *history) of(name string) []string {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return append([]string{}, h.told[name]...)
}

func (h *history) withoutUpdates(name string) []string {
	return slices.DeleteFunc(h.of(name), func(what string) bool { return what == "update" })
}

func (h *history) handler() cache.ResourceEventHandlerFuncs {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { h.add(object, "add") },
		UpdateFunc: func(_, object any) { h.add(object, "update") },
		DeleteFunc: func(object any) { h.add(object, "delete") },
	}
}

// start runs the informer until the check's end and waits for its first state.
func (t *T) start(informer cache.SharedIndexInformer, told *history) {
	if told != nil {
		_, err := informer.AddEventHandler(told.handler())
		t.noError(err)
	}
	t.background(informer.RunWithContext)
	t.isTrue(cache.WaitForCacheSync(t.ctx.Done(), informer.HasSynced), "the informer has its first state")
}

func (t *T) mapInformer(source cache.ListerWatcher) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(source, &corev1.ConfigMap{}, 0, cache.Indexers{})
}

func followWithInformer(t *T, watchList bool) {
	t.createMaps(3)
	source, told := counted(t.mapSource(), watchList, nil), &history{}
	informer := t.mapInformer(source)
	t.start(informer, told)
	lists := int32(1)
	if watchList {
		lists = 0
	}
	t.Expect(source.lists.Load()).To(Equal(lists), "the first state comes by the way that was chosen")
	// The first list may be older than the last create: it is served by the API server's watch cache.
	t.Eventually(informer.GetStore().List).Should(ContainElements(
		HaveField("Name", "map-00"), HaveField("Name", "map-01"), HaveField("Name", "map-02"),
	))

	c := t.client()
	later := t.configMap("later")
	t.noError(c.Create(t.ctx, later))
	t.Eventually(told.of).WithArguments("later").Should(Equal([]string{"add"}))
	later.Data["key"] = "other"
	t.noError(c.Update(t.ctx, later))
	t.noError(c.Delete(t.ctx, later))
	t.Eventually(told.of).WithArguments("later").Should(Equal([]string{"add", "update", "delete"}))
	t.noError(c.Delete(t.ctx, t.configMap("map-00")))
	t.Eventually(told.of).WithArguments("map-00").Should(Equal([]string{"add", "delete"}))
	t.Expect(source.watches.Load()).To(Equal(int32(1)))
}

func followBusyNamespace(t *T, watchList bool) {
	var writers sync.WaitGroup
	for writer := range 4 {
		writers.Go(func() { t.writeABit(writer) })
	}
	informer := t.mapInformer(counted(t.mapSource(), watchList, nil))
	t.start(informer, nil) // in the middle of the writes
	writers.Wait()

	maps := t.typed().CoreV1().ConfigMaps(t.namespace)
	t.Eventually(func(g Gomega) {
		list, err := maps.List(t.ctx, metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(versionsInStore(informer.GetStore())).To(Equal(versionsInList(list)))
	}).Should(Succeed())
}

// writeABit creates, changes and deletes ConfigMaps; the odd ones stay.
func (t *T) writeABit(writer int) {
	c := t.client()
	for i := range 15 {
		one := t.configMap(fmt.Sprintf("writer-%d-%02d", writer, i))
		t.noError(c.Create(t.ctx, one))
		one.Data["key"] = "changed"
		t.noError(c.Update(t.ctx, one))
		if i%2 == 0 {
			t.noError(c.Delete(t.ctx, one))
		}
	}
}

func versionsInStore(store cache.Store) map[string]string {
	versions := map[string]string{}
	for _, object := range store.List() {
		one := object.(*corev1.ConfigMap)
		versions[one.Name] = one.ResourceVersion
	}
	return versions
}

func versionsInList(list *corev1.ConfigMapList) map[string]string {
	versions := map[string]string{}
	for _, one := range list.Items {
		versions[one.Name] = one.ResourceVersion
	}
	return versions
}

func brokenWatchGoesOn(t *T) {
	t.createMaps(1)
	source := counted(t.mapSource(), true, nil)
	begin := source.WatchFuncWithContext
	first := make(chan watch.Interface, 100)
	source.WatchFuncWithContext = func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		watcher, err := begin(ctx, options)
		if err == nil {
			first <- watcher
		}
		return watcher, err
	}
	told := &history{}
	t.start(t.mapInformer(source), told)
	(<-first).Stop()
	t.noError(t.client().Create(t.ctx, t.configMap("meanwhile")))
	t.noError(t.client().Delete(t.ctx, t.configMap("map-00")))

	// A watch that is cut during the first state begins that state anew, which tells updates.
	t.Eventually(told.withoutUpdates).WithArguments("meanwhile").Should(Equal([]string{"add"}))
	t.Eventually(told.withoutUpdates).WithArguments("map-00").Should(Equal([]string{"add", "delete"}))
	t.Expect(source.lists.Load()).To(BeZero(), "the watch goes on at its last version")
}

func expiredWatchListsAgain(t *T) {
	t.needWidgets()
	t.noError(t.client().Create(t.ctx, t.widget("one")))
	begun := make(chan struct{})
	source := counted(t.widgetSource(), false, func(number int32, options *metav1.ListOptions) {
		if number == 1 { // version 1 is long gone: the server says so, and the reflector begins anew
			options.ResourceVersion = "1"
			close(begun)
		}
	})
	told := &history{}
	t.start(cache.NewSharedIndexInformer(source, &unstructured.Unstructured{}, 0, cache.Indexers{}), told)
	<-begun
	t.noError(t.client().Delete(t.ctx, t.widget("one")))
	t.noError(t.client().Create(t.ctx, t.widget("later")))

	t.Eventually(told.of).WithArguments("one").Should(Equal([]string{"add", "delete"}))
	t.Eventually(told.of).WithArguments("later").Should(Equal([]string{"add"}))
	t.Expect(source.lists.Load()).To(BeNumerically(">=", int32(2)))
}

// widgetSource lists and watches the Widgets of the check's namespace.
func (t *T) widgetSource() *cache.ListWatch {
	widgets := t.dynamic().Resource(widgetResource).Namespace(t.namespace)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return widgets.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return widgets.Watch(ctx, options)
		},
	}
}

func informerFactory(t *T) {
	factory := informers.NewSharedInformerFactoryWithOptions(t.typed(), 0, informers.WithNamespace(t.namespace))
	maps, secrets := factory.Core().V1().ConfigMaps(), factory.Core().V1().Secrets()
	deployments := factory.Apps().V1().Deployments()
	for _, informer := range []cache.SharedIndexInformer{maps.Informer(), secrets.Informer(), deployments.Informer()} {
		t.isTrue(!informer.HasSynced(), "nothing has begun")
	}
	factory.StartWithContext(t.ctx)
	t.noError(factory.WaitForCacheSyncWithContext(t.ctx).AsError())

	t.createMaps(1)
	t.Eventually(func() error {
		_, err := maps.Lister().ConfigMaps(t.namespace).Get("map-00")
		return err
	}).Should(Succeed())
	found, err := deployments.Lister().List(labels.Everything())
	t.noError(err)
	t.Expect(found).To(BeEmpty())
}

func informerFactoryWithSelector(t *T) {
	t.createMaps(2)
	factory := informers.NewSharedInformerFactoryWithOptions(t.typed(), 0,
		informers.WithNamespace(t.namespace),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) {
			options.FieldSelector = fields.OneTermEqualSelector("metadata.name", "map-01").String()
		}),
	)
	informer := factory.Core().V1().ConfigMaps().Informer()
	factory.StartWithContext(t.ctx)
	t.noError(factory.WaitForCacheSyncWithContext(t.ctx).AsError())
	t.Expect(informer.GetStore().List()).To(ConsistOf(HaveField("Name", "map-01")))
}

func dynamicInformer(t *T) {
	t.needWidgets()
	t.noError(t.client().Create(t.ctx, t.widget("one")))
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(t.dynamic(), 0, t.namespace, nil)
	t.followWidgets(factory.ForResource(widgetResource).Informer())
}

func metadataInformer(t *T) {
	t.needWidgets()
	t.noError(t.client().Create(t.ctx, t.widget("one")))
	factory := metadatainformer.NewFilteredSharedInformerFactory(t.metadata(), 0, t.namespace, nil)
	t.followWidgets(factory.ForResource(widgetResource).Informer())
}

// followWidgets expects the Widget "one" in the informer, and what happens to it.
func (t *T) followWidgets(informer cache.SharedIndexInformer) {
	told := &history{}
	t.start(informer, told)
	t.Expect(informer.GetStore().ListKeys()).To(Equal([]string{t.namespace + "/one"}))
	c := t.client()
	t.noError(c.Patch(t.ctx, t.widget("one"), mergePatchOf(`{"spec":{"size":9}}`)))
	t.noError(c.Delete(t.ctx, t.widget("one")))
	t.Eventually(told.of).WithArguments("one").Should(Equal([]string{"add", "update", "delete"}))
}

// startCache returns controller-runtime's cache, running and synced, after prepare has asked it for informers.
func (t *T) startCache(options runtimecache.Options, prepare func(runtimecache.Cache)) runtimecache.Cache {
	options.Scheme = scheme
	made, err := runtimecache.New(t.newConfig(), options)
	t.noError(err)
	prepare(made)
	t.background(func(ctx context.Context) { _ = made.Start(ctx) })
	t.isTrue(made.WaitForCacheSync(t.ctx), "the cache has its first state")
	return made
}

func (t *T) inThisNamespace() map[string]runtimecache.Config {
	return map[string]runtimecache.Config{t.namespace: {}}
}

func runtimeCache(t *T) {
	t.needWidgets()
	t.noError(t.client().Create(t.ctx, t.widget("one")))
	read := t.startCache(runtimecache.Options{DefaultNamespaces: t.inThisNamespace()}, func(c runtimecache.Cache) {
		t.noError(c.IndexField(t.ctx, &Widget{}, "spec.color", func(object client.Object) []string {
			return []string{object.(*Widget).Spec.Color}
		}))
	})
	red := t.widget("red")
	red.Spec.Color = "red"
	t.noError(t.client().Create(t.ctx, red))

	t.Eventually(func(g Gomega) {
		list := &WidgetList{}
		g.Expect(read.List(t.ctx, list, client.MatchingFields{"spec.color": "red"})).To(Succeed())
		g.Expect(list.Items).To(ConsistOf(HaveField("Name", "red")))
	}).Should(Succeed())
	one := &Widget{}
	t.noError(read.Get(t.ctx, client.ObjectKey{Namespace: t.namespace, Name: "one"}, one))
	t.Expect(one.Spec.Size).To(Equal(int32(3)))
}

func runtimeCacheSelectors(t *T) {
	c := t.client()
	red := t.configMap("red")
	red.Labels = map[string]string{"color": "red"}
	t.noError(c.Create(t.ctx, red))
	t.noError(c.Create(t.ctx, t.configMap("plain")))
	read := t.startCache(runtimecache.Options{
		DefaultNamespaces:    t.inThisNamespace(),
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{"color": "red"}),
		DefaultTransform:     runtimecache.TransformStripManagedFields(),
	}, func(c runtimecache.Cache) {
		_, err := c.GetInformer(t.ctx, &corev1.ConfigMap{}, runtimecache.BlockUntilSynced(false))
		t.noError(err)
	})
	list := &corev1.ConfigMapList{}
	t.noError(read.List(t.ctx, list))
	t.Expect(mapNames(list)).To(Equal([]string{"red"}))
	t.Expect(list.Items[0].ManagedFields).To(BeEmpty())

	red.Labels = nil
	t.noError(c.Update(t.ctx, red))
	t.Eventually(func(g Gomega) {
		g.Expect(read.List(t.ctx, list)).To(Succeed())
		g.Expect(list.Items).To(BeEmpty())
	}).Should(Succeed())
}

func runtimeCacheMetadata(t *T) {
	t.createMaps(2)
	only := &metav1.PartialObjectMetadata{}
	only.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	read := t.startCache(runtimecache.Options{DefaultNamespaces: t.inThisNamespace()}, func(c runtimecache.Cache) {
		_, err := c.GetInformer(t.ctx, only, runtimecache.BlockUntilSynced(false))
		t.noError(err)
	})
	t.noError(t.client().Delete(t.ctx, t.configMap("map-00")))
	t.Eventually(func() int {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
		t.noError(read.List(t.ctx, list))
		count := 0
		for _, item := range list.Items {
			if item.Name != "kube-root-ca.crt" {
				count++
			}
		}
		return count
	}, eventually, 50*time.Millisecond).Should(Equal(1))
}

func runtimeCacheTwoNamespaces(t *T) {
	other := t.newNamespace()
	namespaces := map[string]runtimecache.Config{t.namespace: {}, other: {}}
	read := t.startCache(runtimecache.Options{DefaultNamespaces: namespaces}, func(c runtimecache.Cache) {
		_, err := c.GetInformer(t.ctx, &corev1.Secret{}, runtimecache.BlockUntilSynced(false))
		t.noError(err)
	})
	for _, namespace := range []string{t.namespace, other, t.newNamespace()} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: namespace}}
		t.noError(t.client().Create(t.ctx, secret))
	}
	t.Eventually(func(g Gomega) {
		list := &corev1.SecretList{}
		g.Expect(read.List(t.ctx, list)).To(Succeed())
		g.Expect(list.Items).To(ConsistOf(HaveField("Namespace", t.namespace), HaveField("Namespace", other)))
	}).Should(Succeed())
}
