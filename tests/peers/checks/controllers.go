package checks

import (
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

var controllerChecks = []Check{
	{Name: "controllers/dependents-are-collected", NeedsControllers: true, Run: dependentsCollected},
	{Name: "controllers/foreground-deletion", NeedsControllers: true, Run: foregroundDeletion},
	{Name: "controllers/orphans-stay", NeedsControllers: true, Run: orphansStay},
	{Name: "controllers/deployment-has-a-replica-set", NeedsControllers: true, Run: deploymentHasReplicaSet},
	{Name: "controllers/default-service-account", NeedsControllers: true, Run: defaultServiceAccount},
	// kube-controller-manager puts a namespace off while definitions come and go
	{Name: "controllers/namespace-ends", NeedsControllers: true, Alone: true, Run: namespaceEnds},
}

// family creates a ConfigMap and another one that it owns.
func (t *T) family() (owner, child *corev1.ConfigMap) {
	c := t.client()
	owner, child = t.configMap("owner"), t.configMap("child")
	t.noError(c.Create(t.ctx, owner))
	t.noError(controllerutil.SetControllerReference(owner, child, scheme))
	t.noError(c.Create(t.ctx, child))
	return owner, child
}

// eventuallyGone waits until the object is not there any more.
func (t *T) eventuallyGone(object client.Object) {
	c := t.client()
	t.Eventually(func() bool {
		return apierrors.IsNotFound(c.Get(t.ctx, client.ObjectKeyFromObject(object), object))
	}, "20s").Should(BeTrue())
}

func dependentsCollected(t *T) {
	owner, child := t.family()
	t.noError(t.client().Delete(t.ctx, owner, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	t.eventuallyGone(child)
}

func foregroundDeletion(t *T) {
	owner, child := t.family()
	t.noError(t.client().Delete(t.ctx, owner, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	t.eventuallyGone(owner)
	t.isTrue(apierrors.IsNotFound(t.client().Get(t.ctx, client.ObjectKeyFromObject(child), child)), "the child went first")
}

func orphansStay(t *T) {
	owner, child := t.family()
	t.noError(t.client().Delete(t.ctx, owner, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	t.eventuallyGone(owner)
	t.noError(t.client().Get(t.ctx, client.ObjectKeyFromObject(child), child))
	t.Expect(child.OwnerReferences).To(BeEmpty())
}

func namespaceEnds(t *T) {
	t.createMaps(3)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: t.namespace}}
	t.noError(t.client().Delete(t.ctx, namespace))
	t.eventuallyGone(namespace)
}

func deploymentHasReplicaSet(t *T) {
	t.noError(t.client().Create(t.ctx, t.deployment("web")))
	t.Eventually(func(g Gomega) {
		list := &appsv1.ReplicaSetList{}
		g.Expect(t.client().List(t.ctx, list, client.InNamespace(t.namespace))).To(Succeed())
		g.Expect(list.Items).To(HaveLen(1))
		g.Expect(list.Items[0].Name).To(HavePrefix("web-"))
		g.Expect(metav1.GetControllerOf(&list.Items[0])).To(HaveValue(HaveField("Name", "web")))
	}, "20s").Should(Succeed())
}

func defaultServiceAccount(t *T) {
	t.Eventually(func() error {
		return t.client().Get(t.ctx, client.ObjectKey{Namespace: t.namespace, Name: "default"}, &corev1.ServiceAccount{})
	}, "20s").Should(Succeed())
	t.Eventually(func(g Gomega) {
		authority := &corev1.ConfigMap{}
		g.Expect(t.client().Get(t.ctx, client.ObjectKey{Namespace: t.namespace, Name: "kube-root-ca.crt"}, authority)).To(Succeed())
		g.Expect(authority.Data).To(HaveKey("ca.crt"))
	}, "20s").Should(Succeed())
}
