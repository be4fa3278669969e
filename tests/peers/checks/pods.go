package checks

import (
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var podChecks = []Check{
	{Name: "pod/eviction", Run: eviction},
	{Name: "pod/eviction-by-runtime-client", Run: evictionByRuntimeClient},
	{Name: "pod/eviction-refused-by-budget", Run: evictionRefused},
	{Name: "pod/binding", Run: binding},
	{Name: "pod/graceful-deletion", Run: gracefulDeletion},
	{Name: "pod/ephemeral-containers", Run: ephemeralContainers},
}

// noScheduler is a scheduler that does not exist: the Pods of the checks stay where they are.
const noScheduler = "peers-none"

func (t *T) pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: t.namespace, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			SchedulerName: noScheduler,
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "main", Image: "registry.example/main:1"}},
		},
	}
}

func eviction(t *T) {
	pods := t.typed().CoreV1().Pods(t.namespace)
	_, err := pods.Create(t.ctx, t.pod("one"), metav1.CreateOptions{})
	t.noError(err)
	evict := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: t.namespace}}

	evict.DeleteOptions = &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
	t.noError(pods.EvictV1(t.ctx, evict))
	_, err = pods.Get(t.ctx, "one", metav1.GetOptions{})
	t.noError(err)

	evict.DeleteOptions = nil
	t.noError(pods.EvictV1(t.ctx, evict))
	_, err = pods.Get(t.ctx, "one", metav1.GetOptions{})
	t.isTrue(apierrors.IsNotFound(err), "an evicted Pod that ran nowhere is read with %v", err)
	t.isTrue(apierrors.IsNotFound(pods.EvictV1(t.ctx, evict)), "there is nothing more to evict")
}

func evictionByRuntimeClient(t *T) {
	c := t.client()
	pod := t.pod("one")
	t.noError(c.Create(t.ctx, pod))
	t.noError(c.SubResource("eviction").Create(t.ctx, pod, &policyv1.Eviction{}))
	t.isTrue(apierrors.IsNotFound(c.Get(t.ctx, client.ObjectKeyFromObject(pod), pod)), "the Pod is gone")
}

func evictionRefused(t *T) {
	c := t.client()
	pod := t.pod("one")
	t.noError(c.Create(t.ctx, pod))
	pod.Status.Phase = corev1.PodRunning
	t.noError(c.Status().Update(t.ctx, pod))
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: t.namespace},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: new(intstr.FromInt32(1)),
			Selector:     &metav1.LabelSelector{MatchLabels: pod.Labels},
		},
	}
	t.noError(c.Create(t.ctx, budget))

	budget.Status = policyv1.PodDisruptionBudgetStatus{ // as the controller would write it
		ObservedGeneration: budget.Generation, ExpectedPods: 1, DesiredHealthy: 1,
	}
	status := budget.Status
	t.noError(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := c.Get(t.ctx, client.ObjectKeyFromObject(budget), budget); err != nil {
			return err
		}
		budget.Status = status
		return c.Status().Update(t.ctx, budget)
	}))

	err := t.evictOnce("one")
	t.isTrue(apierrors.IsTooManyRequests(err), "an eviction against a budget is answered with %v", err)
	t.isTrue(apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause), "the cause is in %#v", err)
	t.Expect(t.status(err).Details.Causes[0].Message).To(
		Equal("The disruption budget one needs 1 healthy pods and has 0 currently"))
	t.noError(c.Get(t.ctx, client.ObjectKeyFromObject(pod), pod))
}

// evictOnce asks for an eviction; the client itself would ask again after a refusal.
func (t *T) evictOnce(name string) error {
	body := `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"` + name + `"}}`
	request := t.raw().Post().AbsPath("/api/v1/namespaces", t.namespace, "pods", name, "eviction")
	return request.MaxRetries(0).Body([]byte(body)).Do(t.ctx).Error()
}

func binding(t *T) {
	pods := t.typed().CoreV1().Pods(t.namespace)
	_, err := pods.Create(t.ctx, t.pod("one"), metav1.CreateOptions{})
	t.noError(err)
	bind := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: "one"},
		Target:     corev1.ObjectReference{Kind: "Node", Name: "somewhere"},
	}
	t.noError(pods.Bind(t.ctx, bind, metav1.CreateOptions{}))
	bound, err := pods.Get(t.ctx, "one", metav1.GetOptions{})
	t.noError(err)
	t.Expect(bound.Spec.NodeName).To(Equal("somewhere"))
	err = pods.Bind(t.ctx, bind, metav1.CreateOptions{})
	t.isTrue(apierrors.IsConflict(err), "a second binding is answered with %v", err)
}

func gracefulDeletion(t *T) {
	pods := t.typed().CoreV1().Pods(t.namespace)
	placed := t.pod("one")
	placed.Finalizers = []string{"peers.example.com/hold"} // where no kubelet runs, the Pod of an unknown node is collected
	placed.Spec.NodeName = "somewhere"
	_, err := pods.Create(t.ctx, placed, metav1.CreateOptions{})
	t.noError(err)
	t.noError(pods.Delete(t.ctx, "one", metav1.DeleteOptions{}))
	going, err := pods.Get(t.ctx, "one", metav1.GetOptions{})
	t.noError(err)
	t.Expect(going.DeletionTimestamp).NotTo(BeNil())
	t.Expect(going.DeletionGracePeriodSeconds).NotTo(BeNil())

	t.noError(pods.Delete(t.ctx, "one", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
	going, err = pods.Get(t.ctx, "one", metav1.GetOptions{})
	t.noError(err)
	t.Expect(going.DeletionGracePeriodSeconds).To(HaveValue(BeZero()))
	going.Finalizers = nil
	_, err = pods.Update(t.ctx, going, metav1.UpdateOptions{})
	t.noError(err)
	_, err = pods.Get(t.ctx, "one", metav1.GetOptions{})
	t.isTrue(apierrors.IsNotFound(err), "the Pod is read with %v", err)
}

func ephemeralContainers(t *T) {
	pods := t.typed().CoreV1().Pods(t.namespace)
	pod, err := pods.Create(t.ctx, t.pod("one"), metav1.CreateOptions{})
	t.noError(err)
	pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{
		EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "registry.example/debug:1"},
	}}
	_, err = pods.Update(t.ctx, pod.DeepCopy(), metav1.UpdateOptions{})
	t.isTrue(apierrors.IsInvalid(err), "an update of a Pod's containers is answered with %v", err)
	changed, err := pods.UpdateEphemeralContainers(t.ctx, "one", pod, metav1.UpdateOptions{})
	t.noError(err)
	t.Expect(changed.Spec.EphemeralContainers).To(HaveLen(1))
}
