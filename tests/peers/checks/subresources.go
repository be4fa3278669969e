package checks

import (
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	autoscalingv1ac "k8s.io/client-go/applyconfigurations/autoscaling/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var subresourceChecks = []Check{
	{Name: "subresource/status-of-a-custom-kind", Run: customStatus},
	{Name: "subresource/status-patch", Run: statusPatch},
	{Name: "subresource/status-of-a-deployment", Run: deploymentStatus},
	{Name: "subresource/none", Run: noSubresource},
	{Name: "subresource/generation", Run: generation},
	{Name: "scale/typed", Run: scaleTyped},
	{Name: "scale/client", Run: scaleClient},
	{Name: "scale/client-on-a-custom-kind", Run: scaleCustom},
	{Name: "scale/runtime-client", Run: scaleRuntimeClient},
}

func customStatus(t *T) {
	t.needWidgets()
	c := t.client()
	widget := t.widget("one")
	t.noError(c.Create(t.ctx, widget))

	widget.Status.Ready = true
	widget.Spec.Size = 9
	t.noError(c.Status().Update(t.ctx, widget))
	t.Expect(widget.Status.Ready).To(BeTrue())
	t.Expect(widget.Spec.Size).To(Equal(int32(3)), "a status update leaves the spec")

	widget.Status.Ready = false
	widget.Spec.Size = 4
	t.noError(c.Update(t.ctx, widget))
	t.Expect(widget.Status.Ready).To(BeTrue(), "an update leaves the status")
	t.Expect(widget.Spec.Size).To(Equal(int32(4)))

	stale := widget.DeepCopyObject().(*Widget)
	widget.Status.Paint = "wet"
	t.noError(c.Status().Update(t.ctx, widget))
	err := c.Status().Update(t.ctx, stale)
	t.isTrue(apierrors.IsConflict(err), "a stale status is answered with %v", err)
}

func statusPatch(t *T) {
	t.needWidgets()
	c := t.client()
	widget := t.widget("one")
	t.noError(c.Create(t.ctx, widget))
	before := widget.DeepCopyObject().(*Widget)
	widget.Status.Size = 3
	widget.Labels = map[string]string{"a": "b"}
	t.noError(c.Status().Patch(t.ctx, widget, client.MergeFrom(before)))
	t.Expect(widget.Status.Size).To(Equal(int32(3)))
	t.Expect(widget.Labels).To(BeEmpty(), "a status patch leaves the labels of a custom kind")
}

func deploymentStatus(t *T) {
	c := t.client()
	deployment := t.deployment("web")
	deployment.Spec.Paused = true
	t.noError(c.Create(t.ctx, deployment))
	t.noError(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := c.Get(t.ctx, client.ObjectKeyFromObject(deployment), deployment); err != nil {
			return err
		}
		deployment.Status.Conditions = append(deployment.Status.Conditions, appsv1.DeploymentCondition{
			Type: "Peered", Status: "True", Reason: "Test",
		})
		deployment.Spec.Replicas = new(int32(5))
		return c.Status().Update(t.ctx, deployment)
	}))
	t.Expect(deployment.Spec.Replicas).To(HaveValue(BeZero()))
	t.Expect(deployment.Status.Conditions).To(ContainElement(HaveField("Reason", "Test")))
}

func generation(t *T) {
	t.needWidgets()
	c := t.client()
	widget := t.widget("one")
	t.noError(c.Create(t.ctx, widget))
	widget.Labels = map[string]string{"a": "b"}
	t.noError(c.Update(t.ctx, widget))
	t.Expect(widget.Generation).To(Equal(int64(1)), "labels are no intent")
	widget.Status.Ready = true
	t.noError(c.Status().Update(t.ctx, widget))
	t.Expect(widget.Generation).To(Equal(int64(1)), "neither is status")
	widget.Spec.Color = "red"
	t.noError(c.Update(t.ctx, widget))
	t.Expect(widget.Generation).To(Equal(int64(2)))
}

func scaleTyped(t *T) {
	deployments := t.typed().AppsV1().Deployments(t.namespace)
	_, err := deployments.Create(t.ctx, t.deployment("web"), metav1.CreateOptions{})
	t.noError(err)

	current, err := deployments.GetScale(t.ctx, "web", metav1.GetOptions{})
	t.noError(err)
	t.Expect(current.Spec.Replicas).To(BeZero())
	t.Expect(current.Status.Selector).To(Equal("app=web"))
	current.Spec.Replicas, current.ResourceVersion = 2, ""
	updated, err := deployments.UpdateScale(t.ctx, "web", current, metav1.UpdateOptions{})
	t.noError(err)
	t.Expect(updated.Spec.Replicas).To(Equal(int32(2)))

	configuration := autoscalingv1ac.Scale().WithSpec(autoscalingv1ac.ScaleSpec().WithReplicas(1))
	force := metav1.ApplyOptions{FieldManager: "one", Force: true}
	applied, err := deployments.ApplyScale(t.ctx, "web", configuration, force)
	t.noError(err)
	t.Expect(applied.Spec.Replicas).To(Equal(int32(1)))
	deployment, err := deployments.Get(t.ctx, "web", metav1.GetOptions{})
	t.noError(err)
	t.Expect(deployment.Spec.Replicas).To(HaveValue(Equal(int32(1))))
	t.Expect(deployment.Generation).To(Equal(int64(3)))
}

func (t *T) scales() scale.ScaleInterface {
	kinds := scale.NewDiscoveryScaleKindResolver(t.discovery())
	made, err := scale.NewForConfig(t.newConfig(), t.dynamicMapper(), dynamic.LegacyAPIPathResolverFunc, kinds)
	t.noError(err)
	return made.Scales(t.namespace)
}

func scaleClient(t *T) {
	t.noError(t.client().Create(t.ctx, t.deployment("web")))
	t.scaleTo(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web", 2)
	deployment := &appsv1.Deployment{}
	t.noError(t.client().Get(t.ctx, client.ObjectKey{Namespace: t.namespace, Name: "web"}, deployment))
	t.Expect(deployment.Spec.Replicas).To(HaveValue(Equal(int32(2))))
}

func (t *T) scaleTo(resource schema.GroupResource, name string, replicas int32) {
	scales := t.scales()
	t.noError(retry.RetryOnConflict(retry.DefaultBackoff, func() error { // a controller may write in between
		current, err := scales.Get(t.ctx, resource, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		current.Spec.Replicas = replicas
		_, err = scales.Update(t.ctx, resource, current, metav1.UpdateOptions{})
		return err
	}))
}

func scaleCustom(t *T) {
	t.needWidgets()
	c := t.client()
	widget := t.widget("one")
	t.noError(c.Create(t.ctx, widget))
	t.scaleTo(widgetResource.GroupResource(), "one", 8)
	patch := []byte(`{"spec":{"replicas":9}}`)
	patched, err := t.scales().Patch(t.ctx, widgetResource, "one", types.MergePatchType, patch, metav1.PatchOptions{})
	t.noError(err)
	t.Expect(patched.Spec.Replicas).To(Equal(int32(9)))
	t.noError(c.Get(t.ctx, client.ObjectKeyFromObject(widget), widget))
	t.Expect(widget.Spec.Size).To(Equal(int32(9)))
	t.Expect(widget.Generation).To(Equal(int64(3)))
}

func scaleRuntimeClient(t *T) {
	t.needWidgets()
	c := t.client()
	widget := t.widget("one")
	t.noError(c.Create(t.ctx, widget))
	current := &autoscalingv1.Scale{}
	t.noError(c.SubResource("scale").Get(t.ctx, widget, current))
	t.Expect(current.Spec.Replicas).To(Equal(int32(3)))
	current.Spec.Replicas = 5
	t.noError(c.SubResource("scale").Update(t.ctx, widget, client.WithSubResourceBody(current)))
	t.noError(c.Get(t.ctx, client.ObjectKeyFromObject(widget), widget))
	t.Expect(widget.Spec.Size).To(Equal(int32(5)))

	current.Spec.Replicas = 500
	err := c.SubResource("scale").Update(t.ctx, widget, client.WithSubResourceBody(current))
	t.isTrue(apierrors.IsConflict(err) || apierrors.IsInvalid(err), "a scale against the schema is answered with %v", err)
}

// noSubresource writes the status of a kind that has it as a plain field.
func noSubresource(t *T) {
	kind, resource := t.ownKind("Thing")
	t.install(definitionOf(kind, resource))
	c := t.client()
	thing := t.widgetTree("one")
	thing.SetGroupVersionKind(kind)
	thing.Object["status"] = map[string]any{"ready": true}
	t.noError(c.Create(t.ctx, thing))
	t.Expect(thing.Object).To(HaveKey("status"))
	err := c.Status().Update(t.ctx, thing)
	t.isTrue(apierrors.IsNotFound(err), "a status that is no subresource is answered with %v", err)
}
