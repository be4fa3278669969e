package main

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	controllerruntime "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

type figures map[string]any

type workload func(context.Context, manager.Manager, options) (figures, error)

var workloads = map[string]workload{
	"synced":      synced,
	"pods":        pods,
	"idle":        idle,
	"metadata":    metadata,
	"reads":       reads,
	"queue":       queue,
	"reconciled":  reconciled,
	"latency":     latency,
	"children":    children,
	"owns":        owns,
	"load":        load,
	"applied":     applied,
	"events":      events,
	"namespaces":  namespaces,
	"controllers": controllers,
	"webhook":     reviews,
}

// ready says that all is built and nothing has been sent, and returns when the clock runs.
func ready() {
	fmt.Println("ready")
	_, _ = input.ReadString('\n')
}

// start runs the manager; an error ends the program.
func start(ctx context.Context, mgr manager.Manager) {
	ready()
	go func() {
		if err := mgr.Start(ctx); err != nil {
			panic(err)
		}
	}()
}

// cached starts the informer of a kind, waits for it, and returns how many objects it holds.
func cached(ctx context.Context, mgr manager.Manager, kind client.Object) (int, error) {
	start(ctx, mgr)
	informer, err := mgr.GetCache().GetInformer(ctx, kind)
	if err != nil {
		return 0, err
	}
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		return 0, errors.New("the cache did not sync")
	}
	return len(informer.(toolscache.SharedIndexInformer).GetStore().ListKeys()), nil
}

func synced(ctx context.Context, mgr manager.Manager, _ options) (figures, error) {
	count, err := cached(ctx, mgr, &Widget{})
	return figures{"objects": count}, err
}

func pods(ctx context.Context, mgr manager.Manager, _ options) (figures, error) {
	count, err := cached(ctx, mgr, &corev1.Pod{})
	return figures{"objects": count}, err
}

func metadata(ctx context.Context, mgr manager.Manager, _ options) (figures, error) {
	kind := &metav1.PartialObjectMetadata{}
	kind.SetGroupVersionKind(groupVersion.WithKind("Widget"))
	count, err := cached(ctx, mgr, kind)
	return figures{"objects": count}, err
}

// namespaces counts by a list: its cache is one of many informers.
func namespaces(ctx context.Context, mgr manager.Manager, _ options) (figures, error) {
	start(ctx, mgr)
	atOnce := cache.BlockUntilSynced(false) // it would wait for one namespace after the other, 100 ms each
	if _, err := mgr.GetCache().GetInformer(ctx, &Widget{}, atOnce); err != nil {
		return nil, err
	}
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		return nil, errors.New("the cache did not sync")
	}
	var all WidgetList
	err := mgr.GetClient().List(ctx, &all)
	return figures{"objects": len(all.Items)}, err
}

func reads(ctx context.Context, mgr manager.Manager, _ options) (figures, error) {
	instance := func(found client.Object) []string { return []string{found.(*Widget).Spec.Selector["instance"]} }
	if err := mgr.GetFieldIndexer().IndexField(ctx, &Widget{}, "instance", instance); err != nil {
		return nil, err
	}
	if _, err := cached(ctx, mgr, &Widget{}); err != nil {
		return nil, err
	}
	var all WidgetList
	if err := mgr.GetClient().List(ctx, &all); err != nil {
		return nil, err
	}
	keys := make([]types.NamespacedName, len(all.Items))
	for i := range all.Items {
		keys[i] = client.ObjectKeyFromObject(&all.Items[i])
	}
	measured, err := gets(ctx, mgr.GetClient(), keys)
	if err != nil {
		return nil, err
	}
	result := figures{"objects": len(keys)}
	measured.into(result, "gets")
	if measured, err = lookups(ctx, mgr.GetClient(), keys); err != nil {
		return nil, err
	}
	measured.into(result, "lookups")
	tenth, err := lists(ctx, mgr.GetClient(), 20, client.MatchingLabels{"tier": "t3"})
	if err != nil {
		return nil, err
	}
	everything, err := lists(ctx, mgr.GetClient(), 5)
	if err != nil {
		return nil, err
	}
	result["list_ms"], result["list_typed_ms"], result["list_all_ms"] = tenth, tenth, everything // its lists are always typed
	return result, nil
}

// lists takes the milliseconds of a list of which a field of each object is read: the median of so many.
func lists(ctx context.Context, reader client.Reader, rounds int, which ...client.ListOption) (float64, error) {
	var times []float64
	sum := int32(0)
	for range rounds {
		began := time.Now()
		var found WidgetList
		if err := reader.List(ctx, &found, which...); err != nil {
			return 0, err
		}
		for i := range found.Items {
			sum += found.Items[i].Spec.Size
		}
		times = append(times, time.Since(began).Seconds()*1e3)
	}
	if sum < 0 {
		return 0, errors.New("the sizes were not read")
	}
	sort.Float64s(times)
	return times[len(times)/2], nil
}

// rate tells how much is done in a second.
type rate struct {
	began    time.Time
	cpuBegan time.Duration
	done     int
}

func newRate() *rate { return &rate{began: time.Now(), cpuBegan: cpu()} }

func (r *rate) goesOn() bool { return time.Since(r.began) < time.Second }

// into puts what was done in a second, and in a second of CPU, among the figures.
func (r *rate) into(all figures, name string) {
	all[name] = float64(r.done) / time.Since(r.began).Seconds()
	all[name+"_cpu"] = float64(r.done) / (cpu() - r.cpuBegan).Seconds()
}

// cpu returns the CPU time of this process.
func cpu() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// gets reads all objects by key, again and again.
func gets(ctx context.Context, reader client.Reader, keys []types.NamespacedName) (*rate, error) {
	measured := newRate()
	for measured.goesOn() {
		for _, key := range keys {
			var found Widget
			if err := reader.Get(ctx, key, &found); err != nil {
				return nil, err
			}
		}
		measured.done += len(keys)
	}
	return measured, nil
}

// lookups finds all objects by an index, one after the other, again and again.
func lookups(ctx context.Context, reader client.Reader, keys []types.NamespacedName) (*rate, error) {
	measured := newRate()
	for measured.goesOn() {
		for _, key := range keys[:min(1000, len(keys))] {
			var found WidgetList
			if err := reader.List(ctx, &found, client.MatchingFields{"instance": key.Name}); err != nil {
				return nil, err
			}
			measured.done += len(found.Items)
		}
	}
	return measured, nil
}

func queue(_ context.Context, _ manager.Manager, given options) (figures, error) {
	ready()
	keys := make([]reconcile.Request, given.objects)
	for i := range keys {
		keys[i].NamespacedName = types.NamespacedName{Namespace: "default", Name: fmt.Sprintf("object-%d", i)}
	}
	limiter := workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]()
	plain := workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: "plain"})
	found := figures{"objects": len(keys)}
	operations(found, "operations", priorityqueue.New[reconcile.Request]("priority"), keys)
	operationsByOne(found, "operations_by_one", priorityqueue.New[reconcile.Request]("one"), keys)
	operations(found, "operations_no_order", plain, keys)
	return found, nil
}

// operations adds all keys and takes them one by one.
func operations(found figures, name string, queue workqueue.TypedRateLimitingInterface[reconcile.Request], keys []reconcile.Request) {
	measured := newRate()
	for measured.goesOn() {
		for _, key := range keys {
			queue.Add(key)
		}
		for range keys {
			key, _ := queue.Get()
			queue.Forget(key)
			queue.Done(key)
		}
		measured.done += len(keys)
	}
	measured.into(found, name)
}

// operationsByOne takes each key as soon as it is added.
func operationsByOne(found figures, name string, queue workqueue.TypedRateLimitingInterface[reconcile.Request], keys []reconcile.Request) {
	measured := newRate()
	for measured.goesOn() {
		for _, key := range keys {
			queue.Add(key)
			taken, _ := queue.Get()
			queue.Forget(taken)
			queue.Done(taken)
		}
		measured.done += len(keys)
	}
	measured.into(found, name)
}

// tally counts reconciles.
type tally struct {
	sync.Mutex
	finished, wanted int
	begins           map[string]int64
	done             chan struct{}
}

func newTally(wanted int) *tally {
	made := &tally{wanted: wanted, begins: map[string]int64{}, done: make(chan struct{})}
	if wanted == 0 {
		close(made.done)
	}
	return made
}

func (t *tally) finish() {
	t.Lock()
	defer t.Unlock()
	t.finished++
	if t.finished == t.wanted {
		close(t.done)
	}
}

// run starts a controller of Widgets, and of what they own, and waits until as many reconciles as there are objects
// have finished.
func (t *tally) run(ctx context.Context, mgr manager.Manager, given options, do reconcile.Func, owned ...client.Object) error {
	builder := controllerruntime.NewControllerManagedBy(mgr).For(&Widget{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: given.concurrency})
	for _, kind := range owned {
		builder = builder.Owns(kind)
	}
	err := builder.Complete(do)
	if err != nil {
		return err
	}
	start(ctx, mgr)
	<-t.done
	return nil
}

// updates lets the harness make its updates, and returns when the reconcile of each began.
func (t *tally) updates(count int) figures {
	t.Lock()
	t.begins = map[string]int64{}
	t.Unlock()
	fmt.Println("synced")
	for {
		time.Sleep(20 * time.Millisecond)
		t.Lock()
		if len(t.begins) >= count {
			defer t.Unlock()
			return figures{"begins": t.begins}
		}
		t.Unlock()
	}
}

func reconciled(ctx context.Context, mgr manager.Manager, given options) (figures, error) {
	return counted(ctx, mgr, given)
}

func idle(ctx context.Context, mgr manager.Manager, given options) (figures, error) {
	return counted(ctx, mgr, given, &corev1.ConfigMap{}, &appsv1.Deployment{})
}

func counted(ctx context.Context, mgr manager.Manager, given options, owned ...client.Object) (figures, error) {
	counted := newTally(given.objects)
	err := counted.run(ctx, mgr, given, func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		var found Widget
		if err := mgr.GetClient().Get(ctx, request.NamespacedName, &found); err != nil {
			return reconcile.Result{}, err
		}
		counted.finish()
		return reconcile.Result{}, nil
	}, owned...)
	return figures{"objects": counted.finished}, err
}

func latency(ctx context.Context, mgr manager.Manager, given options) (figures, error) {
	counted := newTally(given.objects)
	err := counted.run(ctx, mgr, given, func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		now := time.Now().UnixNano()
		counted.Lock()
		counted.begins[request.Name] = now
		counted.Unlock()
		var found Widget
		if err := mgr.GetClient().Get(ctx, request.NamespacedName, &found); err != nil {
			return reconcile.Result{}, err
		}
		counted.finish()
		return reconcile.Result{}, nil
	})
	if err != nil {
		return nil, err
	}
	return counted.updates(given.updates), nil
}

func children(ctx context.Context, mgr manager.Manager, given options) (figures, error) {
	counted := newTally(given.objects)
	err := counted.run(ctx, mgr, given, func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		var found Widget
		if err := mgr.GetClient().Get(ctx, request.NamespacedName, &found); err != nil {
			return reconcile.Result{}, err
		}
		if len(found.Status.Nodes) > 0 {
			return reconcile.Result{}, nil
		}
		if err := createChild(ctx, mgr, &found); err != nil {
			return reconcile.Result{}, err
		}
		found.Status.Nodes = []string{"one"}
		if err := mgr.GetClient().Status().Update(ctx, &found); err != nil {
			return reconcile.Result{}, err
		}
		counted.finish()
		return reconcile.Result{}, nil
	})
	return figures{"objects": counted.finished}, err
}

// owns creates the objects itself, ten at a time, and ends when each has a child and a status that a reconcile has read from the cache.
func owns(ctx context.Context, mgr manager.Manager, given options) (figures, error) {
	counted := newTally(given.objects)
	finished := map[string]bool{}
	do := func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		var found Widget
		if err := mgr.GetClient().Get(ctx, request.NamespacedName, &found); err != nil {
			return reconcile.Result{}, err
		}
		var child corev1.ConfigMap
		key := types.NamespacedName{Namespace: request.Namespace, Name: request.Name + "-child"}
		if err := mgr.GetClient().Get(ctx, key, &child); apierrors.IsNotFound(err) {
			if err := createChild(ctx, mgr, &found); client.IgnoreAlreadyExists(err) != nil {
				return reconcile.Result{}, err
			}
		} else if err != nil {
			return reconcile.Result{}, err
		}
		if len(found.Status.Nodes) == 0 {
			found.Status.Nodes = []string{"one"}
			return reconcile.Result{}, mgr.GetClient().Status().Update(ctx, &found)
		}
		if child.Name == "" {
			return reconcile.Result{}, nil // its own event follows
		}
		counted.Lock()
		isNew := !finished[request.Name]
		finished[request.Name] = true
		counted.Unlock()
		if isNew {
			counted.finish()
		}
		return reconcile.Result{}, nil
	}
	builder := controllerruntime.NewControllerManagedBy(mgr).For(&Widget{}).Owns(&corev1.ConfigMap{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: given.concurrency})
	if err := builder.Complete(reconcile.Func(do)); err != nil {
		return nil, err
	}
	start(ctx, mgr)
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		return nil, errors.New("the cache did not sync")
	}
	if err := createAll(ctx, mgr.GetClient(), given); err != nil {
		return nil, err
	}
	<-counted.done
	return figures{"objects": counted.finished}, nil
}

// createAll creates the objects, so many at a time as there are workers.
func createAll(ctx context.Context, writer client.Writer, given options) error {
	numbers := make(chan int)
	failed := make(chan error, given.concurrency)
	var creating sync.WaitGroup
	for range given.concurrency {
		creating.Go(func() {
			for number := range numbers {
				if err := writer.Create(ctx, newWidget(number)); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	for number := range given.objects {
		select {
		case numbers <- number:
		case err := <-failed:
			return err
		}
	}
	close(numbers)
	creating.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

func newWidget(number int) *Widget {
	name := fmt.Sprintf("widget-%06d", number)
	made := &Widget{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "bench",
			Labels: map[string]string{"app": "bench", "tier": fmt.Sprintf("t%d", number%10), "instance": name},
		},
		Spec: WidgetSpec{
			Size:     int32(number % 7),
			Image:    fmt.Sprintf("registry.example.com/team/image:%d", number%100),
			Selector: map[string]string{"app": "bench", "instance": name},
		},
	}
	for index := range 8 {
		made.Spec.Args = append(made.Spec.Args, fmt.Sprintf("--setting-%d=value-%d", index, number))
	}
	for index := range 7 {
		made.Spec.Env = append(made.Spec.Env, Variable{Name: fmt.Sprintf("VARIABLE_%d", index), Value: fmt.Sprintf("value %d", number)})
	}
	return made
}

func createChild(ctx context.Context, mgr manager.Manager, owner *Widget) error {
	child := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: owner.Name + "-child", Namespace: owner.Namespace},
		Data:       map[string]string{"size": fmt.Sprint(owner.Spec.Size)},
	}
	if err := controllerutil.SetControllerReference(owner, child, mgr.GetScheme()); err != nil {
		return err
	}
	return mgr.GetClient().Create(ctx, child)
}

// load returns when the reconcile of each update began; an update is known by the size it wrote.
func load(ctx context.Context, mgr manager.Manager, given options) (figures, error) {
	counted := newTally(given.objects)
	err := counted.run(ctx, mgr, given, func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		now := time.Now().UnixNano()
		var found Widget
		if err := mgr.GetClient().Get(ctx, request.NamespacedName, &found); err != nil {
			return reconcile.Result{}, err
		}
		size := fmt.Sprint(found.Spec.Size)
		counted.Lock()
		if _, known := counted.begins[size]; !known {
			counted.begins[size] = now
		}
		counted.Unlock()
		counted.finish()
		return reconcile.Result{}, nil
	})
	if err != nil {
		return nil, err
	}
	return counted.updates(given.updates), nil
}

func applied(ctx context.Context, mgr manager.Manager, given options) (figures, error) {
	counted := newTally(given.objects)
	err := counted.run(ctx, mgr, given, func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		var found Widget
		if err := mgr.GetClient().Get(ctx, request.NamespacedName, &found); err != nil {
			return reconcile.Result{}, err
		}
		child := corev1apply.ConfigMap(request.Name+"-child", request.Namespace).
			WithData(map[string]string{"size": fmt.Sprint(found.Spec.Size)})
		if err := mgr.GetClient().Apply(ctx, child, client.FieldOwner("bench"), client.ForceOwnership); err != nil {
			return reconcile.Result{}, err
		}
		counted.finish()
		return reconcile.Result{}, nil
	})
	return figures{"objects": counted.finished}, err
}

// awaited is a channel that closes after so many calls of the function.
func awaited(calls int) (<-chan struct{}, func()) {
	done := make(chan struct{})
	var count atomic.Int64
	return done, func() {
		if count.Add(1) == int64(calls) {
			close(done)
		}
	}
}

// events lets so many handlers see each update; without any, a controller whose predicate rejects everything.
func events(ctx context.Context, mgr manager.Manager, given options) (figures, error) {
	created, create := awaited(given.objects)
	updated, update := awaited(given.updates * max(1, given.width))
	if given.width == 0 {
		nothing := predicate.Funcs{
			CreateFunc: func(event.CreateEvent) bool { create(); return false },
			UpdateFunc: func(changed event.UpdateEvent) bool {
				if changed.ObjectNew.GetLabels()["app"] != "" {
					update()
				}
				return false
			},
		}
		err := controllerruntime.NewControllerManagedBy(mgr).For(&Widget{}).WithEventFilter(nothing).
			Complete(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
				return reconcile.Result{}, errors.New("nothing was to come here")
			}))
		if err != nil {
			return nil, err
		}
		start(ctx, mgr)
		<-created
	} else {
		start(ctx, mgr)
		informer, err := mgr.GetCache().GetInformer(ctx, &Widget{})
		if err != nil {
			return nil, err
		}
		for range given.width {
			_, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(_, changed any) {
				if changed.(*Widget).Labels["app"] != "" {
					update()
				}
			}})
			if err != nil {
				return nil, err
			}
		}
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return nil, errors.New("the cache did not sync")
		}
	}
	fmt.Println("synced")
	<-updated
	return figures{"objects": given.objects}, nil
}

// controllers runs so many of one kind; each reads each object once.
func controllers(ctx context.Context, mgr manager.Manager, given options) (figures, error) {
	done, finish := awaited(given.objects)
	do := reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		var found Widget
		if err := mgr.GetClient().Get(ctx, request.NamespacedName, &found); err != nil {
			return reconcile.Result{}, err
		}
		finish()
		return reconcile.Result{}, nil
	})
	for number := range given.width {
		err := controllerruntime.NewControllerManagedBy(mgr).Named(fmt.Sprintf("controller-%d", number)).For(&Widget{}).
			WithOptions(controller.Options{MaxConcurrentReconciles: given.concurrency}).Complete(do)
		if err != nil {
			return nil, err
		}
	}
	start(ctx, mgr)
	<-done
	return figures{"objects": given.objects}, nil
}

type defaulter struct{ seen func() }

func (d defaulter) Default(_ context.Context, widget *Widget) error {
	widget.Spec.Image = "registry.example.com/team/default:1"
	d.seen()
	return nil
}

// reviews serves a defaulter until so many objects were seen.
func reviews(ctx context.Context, mgr manager.Manager, given options) (figures, error) {
	done, seen := awaited(given.objects)
	if err := builder.WebhookManagedBy(mgr, &Widget{}).WithDefaulter(defaulter{seen}).Complete(); err != nil {
		return nil, err
	}
	start(ctx, mgr)
	for mgr.GetWebhookServer().StartedChecker()(nil) != nil {
		time.Sleep(20 * time.Millisecond)
	}
	fmt.Println("synced")
	<-done
	return figures{"objects": given.objects}, nil
}
