package checks

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	controllerruntime "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	runtimecache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var managerChecks = []Check{
	{Name: "manager/controller", Run: managedController},
	{Name: "manager/leader-election", Run: managerElection},
	{Name: "manager/event-recorder", Run: managerRecorder},
	{Name: "manager/webhook", Run: managerWebhook},
	{Name: "controllerutil/create-or-update", Run: createOrUpdate},
	{Name: "controllerutil/owner-reference", Run: ownerReference},
}

const (
	widgetFinalizer = "peers.example.com/widget"
	byColor         = "spec.color"
)

// painter is a controller as people write them: it keeps a ConfigMap for each Widget, tells its state in the status,
// takes the paint from a Secret, and cleans up behind a finalizer.
type painter struct {
	client.Client
	cleaned chan string
}

func (p *painter) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	widget := &Widget{}
	if err := p.Get(ctx, request.NamespacedName, widget); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !widget.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, p.finalize(ctx, widget)
	}
	if controllerutil.AddFinalizer(widget, widgetFinalizer) {
		if err := p.Update(ctx, widget); err != nil {
			return reconcile.Result{}, err
		}
	}
	if err := p.keepChild(ctx, widget); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, p.tell(ctx, widget)
}

func (p *painter) finalize(ctx context.Context, widget *Widget) error {
	if !controllerutil.RemoveFinalizer(widget, widgetFinalizer) {
		return nil
	}
	if err := p.Update(ctx, widget); err != nil {
		return client.IgnoreNotFound(err)
	}
	p.cleaned <- widget.Name
	return nil
}

func (p *painter) keepChild(ctx context.Context, widget *Widget) error {
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: widget.Name, Namespace: widget.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, p.Client, child, func() error {
		child.Data = map[string]string{"size": fmt.Sprint(widget.Spec.Size)}
		return controllerutil.SetControllerReference(widget, child, p.Scheme())
	})
	return err
}

func (p *painter) tell(ctx context.Context, widget *Widget) error {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: widget.Namespace, Name: "paint"}
	if err := p.Get(ctx, key, secret); client.IgnoreNotFound(err) != nil {
		return err
	}
	before := widget.DeepCopyObject().(*Widget)
	widget.Status.Ready = true
	widget.Status.Size = widget.Spec.Size
	widget.Status.Paint = string(secret.Data["paint"])
	return p.Status().Patch(ctx, widget, client.MergeFrom(before))
}

// widgetsOfTheNamespace maps a Secret to all Widgets beside it.
func (p *painter) widgetsOfTheNamespace(ctx context.Context, secret client.Object) []reconcile.Request {
	list := &WidgetList{}
	if err := p.List(ctx, list, client.InNamespace(secret.GetNamespace()), client.MatchingFields{byColor: "grey"}); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}

func (p *painter) setUp(t *T, mgr manager.Manager) {
	t.noError(mgr.GetFieldIndexer().IndexField(t.ctx, &Widget{}, byColor, func(object client.Object) []string {
		return []string{object.(*Widget).Spec.Color}
	}))
	t.noError(builder.ControllerManagedBy(mgr).
		Named("painter").
		For(&Widget{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.ConfigMap{}).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(p.widgetsOfTheNamespace)).
		Complete(p))
}

// manager returns a manager of the check's namespace.
func (t *T) manager(change func(*manager.Options)) manager.Manager {
	options := manager.Options{
		Scheme:     scheme,
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Cache:      runtimecache.Options{DefaultNamespaces: t.inThisNamespace()},
		Controller: config.Controller{SkipNameValidation: new(true)}, // each server's run has the same controllers
	}
	if change != nil {
		change(&options)
	}
	made, err := controllerruntime.NewManager(t.newConfig(), options)
	t.noError(err)
	return made
}

func (t *T) startManager(mgr manager.Manager) {
	t.background(func(ctx context.Context) {
		if err := mgr.Start(ctx); err != nil {
			t.fail("the manager ended: " + err.Error())
		}
	})
}

func managedController(t *T) {
	t.needWidgets()
	mgr := t.manager(nil)
	painter := &painter{Client: mgr.GetClient(), cleaned: make(chan string, 10)}
	painter.setUp(t, mgr)
	t.startManager(mgr)

	c := t.client()
	widget := t.widget("one")
	t.noError(c.Create(t.ctx, widget))
	t.eventuallyWidget(widget, func(g Gomega) {
		g.Expect(widget.Status.Ready).To(BeTrue())
		g.Expect(widget.Status.Size).To(Equal(int32(3)))
		g.Expect(widget.Finalizers).To(ConsistOf(widgetFinalizer))
	})
	child := t.configMap("one")
	t.noError(c.Get(t.ctx, client.ObjectKeyFromObject(child), child))
	t.Expect(metav1.IsControlledBy(child, widget)).To(BeTrue())

	t.noError(c.Delete(t.ctx, child)) // it is owned: it comes again
	t.Eventually(func() types.UID {
		again := &corev1.ConfigMap{}
		_ = c.Get(t.ctx, client.ObjectKeyFromObject(child), again)
		return again.UID
	}).ShouldNot(Or(BeEmpty(), Equal(child.UID)))

	t.noError(c.Create(t.ctx, &corev1.Secret{ // it is watched: all Widgets hear of it
		ObjectMeta: metav1.ObjectMeta{Name: "paint", Namespace: t.namespace}, Data: map[string][]byte{"paint": []byte("wet")},
	}))
	t.eventuallyWidget(widget, func(g Gomega) { g.Expect(widget.Status.Paint).To(Equal("wet")) })

	t.noError(c.Patch(t.ctx, widget, mergePatchOf(`{"spec":{"size":4}}`)))
	t.eventuallyWidget(widget, func(g Gomega) { g.Expect(widget.Status.Size).To(Equal(int32(4))) })
	t.noError(c.Delete(t.ctx, widget))
	t.Eventually(painter.cleaned).Should(Receive(Equal("one")))
	t.isTrue(apierrors.IsNotFound(c.Get(t.ctx, client.ObjectKeyFromObject(widget), widget)), "the Widget is gone")
}

// eventuallyWidget reads the Widget until what is expected of it holds.
func (t *T) eventuallyWidget(widget *Widget, expected func(Gomega)) {
	c := t.client()
	t.Eventually(func(g Gomega) {
		g.Expect(c.Get(t.ctx, client.ObjectKeyFromObject(widget), widget)).To(Succeed())
		expected(g)
	}).Should(Succeed())
}

func managerElection(t *T) {
	elected := func(options *manager.Options) {
		options.LeaderElection = true
		options.LeaderElectionID = "peers"
		options.LeaderElectionNamespace = t.namespace
		options.LeaderElectionReleaseOnCancel = true
		options.LeaseDuration, options.RenewDeadline, options.RetryPeriod =
			new(3*time.Second), new(2*time.Second), new(200*time.Millisecond)
	}
	first, second := t.manager(elected), t.manager(elected)
	ctx, stopFirst := context.WithCancel(t.ctx)
	ended := make(chan error, 1)
	go func() { ended <- first.Start(ctx) }()
	t.Eventually(first.Elected()).Should(BeClosed())
	t.startManager(second)
	lease := &coordinationv1.Lease{}
	t.noError(t.client().Get(t.ctx, client.ObjectKey{Namespace: t.namespace, Name: "peers"}, lease))
	t.Expect(second.Elected()).NotTo(BeClosed())

	stopFirst()
	t.noError(<-ended)
	t.Eventually(second.Elected()).Should(BeClosed())
	holder := lease.Spec.HolderIdentity
	t.noError(t.client().Get(t.ctx, client.ObjectKeyFromObject(lease), lease))
	t.Expect(lease.Spec.HolderIdentity).NotTo(Equal(holder))
}

func managerRecorder(t *T) {
	mgr := t.manager(nil)
	t.startManager(mgr)
	one := t.configMap("one")
	t.noError(t.client().Create(t.ctx, one))
	mgr.GetEventRecorder("peer").Eventf(one, nil, corev1.EventTypeNormal, "Made", "Making", "it was made")
	t.Eventually(func(g Gomega) {
		list, err := t.typed().EventsV1().Events(t.namespace).List(t.ctx, metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(list.Items).To(ConsistOf(And(HaveField("Reason", "Made"), HaveField("Note", "it was made"))))
	}).Should(Succeed())
}

// managerWebhook serves a defaulter by the manager's own server, at the path that the builder makes of the kind.
func managerWebhook(t *T) {
	t.needWidgets()
	hooks := t.hooks()
	hooks.mutate(nil, func(hook *admissionregistrationv1.MutatingWebhook) {
		hook.Rules = on(widgetVersion.Group, "widgets", admissionregistrationv1.Create)
		hook.ClientConfig.Service.Path = new("/mutate-peers-example-com-v1-widget")
	})
	hooks.install()
	mgr := t.manager(func(options *manager.Options) {
		options.WebhookServer = newHookServer(&hooks.options)
	})
	t.noError(builder.WebhookManagedBy(mgr, &Widget{}).WithDefaulter(bigger{}).Complete())
	t.startManager(mgr)
	t.Eventually(func() string {
		widget := t.widget("tried")
		_ = client.NewDryRunClient(t.client()).Create(t.ctx, widget)
		return widget.Spec.Color
	}).Should(Equal("red"))
}

func createOrUpdate(t *T) {
	c := t.client()
	one := t.configMap("one")
	set := func(value string) func() error {
		return func() error {
			one.Data = map[string]string{"key": value}
			return nil
		}
	}
	for _, step := range []struct {
		call   func(context.Context, client.Client, client.Object, controllerutil.MutateFn) (controllerutil.OperationResult, error)
		value  string
		result controllerutil.OperationResult
	}{
		{controllerutil.CreateOrUpdate, "1", controllerutil.OperationResultCreated},
		{controllerutil.CreateOrUpdate, "1", controllerutil.OperationResultNone},
		{controllerutil.CreateOrUpdate, "2", controllerutil.OperationResultUpdated},
		{controllerutil.CreateOrPatch, "3", controllerutil.OperationResultUpdated},
		{controllerutil.CreateOrPatch, "3", controllerutil.OperationResultNone},
	} {
		result, err := step.call(t.ctx, c, one, set(step.value))
		t.noError(err)
		t.Expect(result).To(Equal(step.result))
	}
}

func ownerReference(t *T) {
	t.needWidgets()
	c := t.client()
	first, second := t.widget("first"), t.widget("second")
	t.noError(c.Create(t.ctx, first))
	t.noError(c.Create(t.ctx, second))
	child := t.configMap("child")
	t.noError(controllerutil.SetControllerReference(first, child, scheme))
	t.noError(controllerutil.SetOwnerReference(second, child, scheme))
	t.noError(c.Create(t.ctx, child))
	t.Expect(metav1.GetControllerOf(child)).To(HaveValue(HaveField("Name", "first")))
	t.Expect(child.OwnerReferences).To(HaveLen(2))

	other := child.DeepCopy()
	other.OwnerReferences[1].Controller = new(true)
	err := c.Update(t.ctx, other)
	t.isTrue(apierrors.IsInvalid(err), "two controllers of one object are answered with %v", err)
	t.noError(controllerutil.RemoveControllerReference(first, child, scheme))
	t.noError(c.Update(t.ctx, child))
	t.Expect(child.OwnerReferences).To(HaveLen(1))
}
