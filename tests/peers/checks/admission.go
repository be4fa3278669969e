package checks

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

var admissionChecks = []Check{
	{Name: "admission/defaulter", Run: defaulter},
	{Name: "admission/validator", Run: validator},
	{Name: "admission/warnings", Run: admissionWarnings},
	{Name: "admission/request", Run: admissionRequest},
	{Name: "admission/custom-kind", Run: admissionOfCustomKind},
	{Name: "admission/subresource", Run: admissionOfSubresource},
	{Name: "admission/object-selector", Run: admissionObjectSelector},
	{Name: "admission/match-conditions", Run: admissionMatchConditions},
	{Name: "admission/failure-policy", Run: admissionFailurePolicy},
}

// hooks serves handlers by controller-runtime's webhook server, and their configurations by URL.
type hooks struct {
	t        *T
	options  envtest.WebhookInstallOptions
	handlers map[string]http.Handler
}

func (t *T) hooks() *hooks {
	return &hooks{t: t, handlers: map[string]http.Handler{}}
}

// mutate calls the handler before ConfigMaps of the check's namespace are created or changed, unless change says
// otherwise.
func (h *hooks) mutate(handler http.Handler, change func(*admissionregistrationv1.MutatingWebhook)) {
	hook := admissionregistrationv1.MutatingWebhook{
		Name:                    "mutate.peers.example.com",
		ClientConfig:            h.serve(handler),
		Rules:                   onConfigMaps(),
		NamespaceSelector:       h.inThisNamespace(),
		SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
		AdmissionReviewVersions: []string{"v1"},
	}
	if change != nil {
		change(&hook)
	}
	h.options.MutatingWebhooks = append(h.options.MutatingWebhooks, &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: h.t.namespace},
		Webhooks:   []admissionregistrationv1.MutatingWebhook{hook},
	})
}

// validate is mutate's other half.
func (h *hooks) validate(handler http.Handler, change func(*admissionregistrationv1.ValidatingWebhook)) {
	hook := admissionregistrationv1.ValidatingWebhook{
		Name:                    "validate.peers.example.com",
		ClientConfig:            h.serve(handler),
		Rules:                   onConfigMaps(),
		NamespaceSelector:       h.inThisNamespace(),
		SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
		AdmissionReviewVersions: []string{"v1"},
	}
	if change != nil {
		change(&hook)
	}
	h.options.ValidatingWebhooks = append(h.options.ValidatingWebhooks, &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: h.t.namespace},
		Webhooks:   []admissionregistrationv1.ValidatingWebhook{hook},
	})
}

// serve keeps the handler under a path; envtest makes a URL of the service.
func (h *hooks) serve(handler http.Handler) admissionregistrationv1.WebhookClientConfig {
	path := fmt.Sprintf("/%d", len(h.handlers))
	h.handlers[path] = handler
	return admissionregistrationv1.WebhookClientConfig{
		Service: &admissionregistrationv1.ServiceReference{Namespace: "none", Name: "none", Path: &path},
	}
}

func (h *hooks) inThisNamespace() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: h.t.namespace}}
}

func onConfigMaps() []admissionregistrationv1.RuleWithOperations {
	return on("", "configmaps", admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete)
}

func on(group, resource string, operations ...admissionregistrationv1.OperationType) []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: operations,
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: []string{resource},
		},
	}}
}

// install creates the configurations and, before them, a certificate and a port for the server.
func (h *hooks) install() {
	t := h.t
	t.noError(h.options.Install(t.newConfig()))
	t.atTheEnd(func(ctx context.Context) {
		for _, one := range h.options.MutatingWebhooks {
			_ = t.client().Delete(ctx, one)
		}
		for _, one := range h.options.ValidatingWebhooks {
			_ = t.client().Delete(ctx, one)
		}
		_ = os.RemoveAll(h.options.LocalServingCertDir)
	})
}

// start serves the handlers, and returns when they work: working is asked until it returns true.
func (h *hooks) start(working func() bool) {
	h.install()
	h.t.serveHooks(&h.options, h.handlers)
	h.t.Eventually(working).Should(BeTrue(), "the server calls the webhook")
}

// newHookServer returns controller-runtime's webhook server at the place that envtest has made ready.
func newHookServer(options *envtest.WebhookInstallOptions) webhook.Server {
	return webhook.NewServer(webhook.Options{
		Host: options.LocalServingHost, Port: options.LocalServingPort, CertDir: options.LocalServingCertDir,
	})
}

func (t *T) serveHooks(options *envtest.WebhookInstallOptions, handlers map[string]http.Handler) {
	server := newHookServer(options)
	for path, handler := range handlers {
		server.Register(path, handler)
	}
	t.background(func(ctx context.Context) { _ = server.Start(ctx) })
	t.Eventually(func() error { return server.StartedChecker()(nil) }).Should(Succeed())
}

// tried is a ConfigMap that is created in a dry run to see whether a webhook is called.
func (t *T) tried() (*corev1.ConfigMap, error) {
	tried := t.configMap("tried")
	return tried, client.NewDryRunClient(t.client()).Create(t.ctx, tried)
}

// labelled is a defaulter that sets a label.
type labelled struct{}

func (labelled) Default(_ context.Context, object *corev1.ConfigMap) error {
	if object.Labels == nil {
		object.Labels = map[string]string{}
	}
	object.Labels["peer"] = "was-here"
	return nil
}

func defaulter(t *T) {
	hooks := t.hooks()
	hooks.mutate(admission.WithDefaulter(scheme, labelled{}), nil)
	hooks.start(func() bool {
		tried, err := t.tried()
		return err == nil && tried.Labels["peer"] == "was-here"
	})
	one := t.configMap("one")
	t.noError(t.client().Create(t.ctx, one))
	t.Expect(one.Labels).To(HaveKeyWithValue("peer", "was-here"))
	one.Labels = nil
	t.noError(t.client().Update(t.ctx, one))
	t.Expect(one.Labels).To(HaveKeyWithValue("peer", "was-here"))
}

// careful is a validator of ConfigMaps. What it is asked is in their data.
type careful struct{}

func (careful) ValidateCreate(_ context.Context, object *corev1.ConfigMap) (admission.Warnings, error) {
	if object.Name == "tried" {
		return nil, errors.New("the webhook works")
	}
	if warning, has := object.Data["warn"]; has {
		return admission.Warnings{warning}, nil
	}
	if reason, has := object.Data["deny"]; has {
		return nil, errors.New(reason)
	}
	return nil, nil
}

func (careful) ValidateUpdate(_ context.Context, before, after *corev1.ConfigMap) (admission.Warnings, error) {
	if before.Data["key"] != after.Data["key"] {
		return nil, apierrors.NewConflict(corev1.Resource("configmaps"), after.Name, errors.New("key is for good"))
	}
	return nil, nil
}

func (careful) ValidateDelete(_ context.Context, object *corev1.ConfigMap) (admission.Warnings, error) {
	if object.Labels["keep"] != "" {
		return nil, errors.New("it is kept")
	}
	return nil, nil
}

func (t *T) startCareful(change func(*admissionregistrationv1.ValidatingWebhook)) {
	hooks := t.hooks()
	hooks.validate(admission.WithValidator(scheme, careful{}), change)
	hooks.start(func() bool {
		_, err := t.tried()
		return err != nil
	})
}

func validator(t *T) {
	t.startCareful(nil)
	c := t.client()
	denied := t.configMap("one")
	denied.Data["deny"] = "not today"
	err := c.Create(t.ctx, denied)
	t.isTrue(apierrors.IsForbidden(err), "a denial is %v", err)
	t.Expect(err.Error()).To(Equal(`admission webhook "validate.peers.example.com" denied the request: not today`))

	one := t.configMap("one")
	one.Labels = map[string]string{"keep": "yes"}
	t.noError(c.Create(t.ctx, one))
	changed := one.DeepCopy()
	changed.Data["key"] = "other"
	err = c.Update(t.ctx, changed)
	t.isTrue(apierrors.IsConflict(err), "the webhook's own reason is kept: %v", err)

	err = c.Delete(t.ctx, one)
	t.isTrue(apierrors.IsForbidden(err), "a denied delete is %v", err)
	one.Labels = nil
	t.noError(c.Update(t.ctx, one))
	t.noError(c.Delete(t.ctx, one))
}

func admissionWarnings(t *T) {
	t.startCareful(nil)
	heard := &warningList{}
	config := t.newConfig()
	config.WarningHandler = heard
	warned := t.configMap("one")
	warned.Data["warn"] = "mind the gap"
	t.noError(t.clientOf(config).Create(t.ctx, warned))
	t.Expect(heard.all()).To(ConsistOf("mind the gap"))
}

// requests is a handler that allows all and remembers what it was asked.
type requests struct {
	mutex sync.Mutex
	seen  []admission.Request
}

func (r *requests) Handle(_ context.Context, request admission.Request) admission.Response {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if request.Name != "kube-root-ca.crt" { // a controller creates it in each namespace, at any time
		r.seen = append(r.seen, request)
	}
	return admission.Allowed("")
}

func (r *requests) count() int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return len(r.seen)
}

func (r *requests) last() admission.Request {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.seen[len(r.seen)-1]
}

// startRemembering validates by a handler that allows all and remembers.
func (t *T) startRemembering(change func(*admissionregistrationv1.ValidatingWebhook), provoke func()) *requests {
	remembered := &requests{}
	hooks := t.hooks()
	hooks.validate(&webhook.Admission{Handler: remembered}, change)
	hooks.start(func() bool {
		provoke()
		return remembered.count() > 0
	})
	return remembered
}

func admissionRequest(t *T) {
	remembered := t.startRemembering(nil, func() { _, _ = t.tried() })
	dry := remembered.last()
	t.Expect(dry.DryRun).To(HaveValue(BeTrue()))
	t.Expect(dry.Operation).To(Equal(admissionv1.Create))
	t.Expect(dry.UID).NotTo(BeEmpty())
	t.Expect(dry.Kind).To(Equal(metav1.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}))
	t.Expect(dry.Resource).To(Equal(metav1.GroupVersionResource{Version: "v1", Resource: "configmaps"}))
	t.Expect(dry.Namespace).To(Equal(t.namespace))
	t.Expect(dry.Name).To(Equal("tried"))
	t.Expect(dry.UserInfo.Groups).To(ContainElement("system:authenticated"))
	t.Expect(dry.OldObject.Raw).To(BeEmpty())

	c := t.client()
	one := t.configMap("one")
	t.noError(c.Create(t.ctx, one))
	one.Data["key"] = "other"
	t.noError(c.Update(t.ctx, one))
	update := remembered.last()
	t.Expect(update.Operation).To(Equal(admissionv1.Update))
	t.Expect(string(update.OldObject.Raw)).To(ContainSubstring(`"key":"value"`))
	t.Expect(string(update.Object.Raw)).To(ContainSubstring(`"key":"other"`))
	t.noError(c.Delete(t.ctx, one))
	deletion := remembered.last()
	t.Expect(deletion.Operation).To(Equal(admissionv1.Delete))
	t.Expect(deletion.Object.Raw).To(BeEmpty())
	t.Expect(string(deletion.OldObject.Raw)).To(ContainSubstring(`"key":"other"`))
	t.Expect(string(deletion.Options.Raw)).To(ContainSubstring(`"kind":"DeleteOptions"`))
}

// bigger is a defaulter of Widgets.
type bigger struct{}

func (bigger) Default(_ context.Context, widget *Widget) error {
	if widget.Spec.Color == "grey" {
		widget.Spec.Color = "red"
	}
	return nil
}

func admissionOfCustomKind(t *T) {
	t.needWidgets()
	hooks := t.hooks()
	hooks.mutate(admission.WithDefaulter(scheme, bigger{}), func(hook *admissionregistrationv1.MutatingWebhook) {
		hook.Rules = on(widgetVersion.Group, "widgets", admissionregistrationv1.Create)
	})
	widget := t.widget("tried")
	hooks.start(func() bool {
		widget = t.widget("tried")
		return client.NewDryRunClient(t.client()).Create(t.ctx, widget) == nil && widget.Spec.Color == "red"
	})
}

func admissionOfSubresource(t *T) {
	t.needWidgets()
	c := t.client()
	widget := t.widget("one")
	t.noError(c.Create(t.ctx, widget))
	remembered := t.startRemembering(func(hook *admissionregistrationv1.ValidatingWebhook) {
		hook.Rules = on(widgetVersion.Group, "widgets/status", admissionregistrationv1.Update)
	}, func() { t.noError(c.Status().Patch(t.ctx, widget, mergePatchOf(`{"status":{"paint":"wet"}}`))) })

	t.Expect(remembered.last().SubResource).To(Equal("status"))
	before := remembered.count()
	t.noError(c.Patch(t.ctx, widget, mergePatchOf(`{"spec":{"size":4}}`)))
	t.Expect(remembered.count()).To(Equal(before), "the object itself is another resource")
}

func admissionObjectSelector(t *T) {
	t.startCareful(func(hook *admissionregistrationv1.ValidatingWebhook) {
		hook.ObjectSelector = &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "free", Operator: metav1.LabelSelectorOpDoesNotExist}},
		}
	})
	one := t.configMap("one")
	one.Data["deny"] = "not today"
	one.Labels = map[string]string{"free": "yes"}
	t.noError(t.client().Create(t.ctx, one))
}

func admissionMatchConditions(t *T) {
	t.startCareful(func(hook *admissionregistrationv1.ValidatingWebhook) {
		hook.MatchConditions = []admissionregistrationv1.MatchCondition{{
			Name: "not-free", Expression: "request.operation != 'CREATE' || object.metadata.name != 'free'",
		}}
	})
	free := t.configMap("free")
	free.Data["deny"] = "not today"
	t.noError(t.client().Create(t.ctx, free))
	bound := t.configMap("bound")
	bound.Data["deny"] = "not today"
	err := t.client().Create(t.ctx, bound)
	t.isTrue(apierrors.IsForbidden(err), "a denial is %v", err)
}

func admissionFailurePolicy(t *T) {
	hooks := t.hooks()
	broken := http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) { http.Error(answer, "broken", 500) })
	hooks.mutate(broken, func(hook *admissionregistrationv1.MutatingWebhook) {
		hook.FailurePolicy = new(admissionregistrationv1.Ignore)
	})
	hooks.validate(broken, func(hook *admissionregistrationv1.ValidatingWebhook) {
		hook.FailurePolicy = new(admissionregistrationv1.Fail)
	})
	hooks.start(func() bool {
		_, err := t.tried()
		return err != nil
	})
	err := t.client().Create(t.ctx, t.configMap("one"))
	t.isTrue(apierrors.IsInternalError(err), "a webhook that fails is answered with %v", err)
	t.Expect(err.Error()).To(ContainSubstring(`failed calling webhook "validate.peers.example.com"`))
}
