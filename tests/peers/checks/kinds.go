package checks

import (
	"strings"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var kindChecks = []Check{
	{Name: "kind/protobuf-creates-what-json-creates", Run: protobufCreatesWhatJSONCreates},
	{Name: "kind/secret", Run: secretKind},
	{Name: "kind/service-addresses", Run: serviceAddresses},
	{Name: "kind/two-versions-of-autoscaler", Run: twoVersionsOfAutoscaler},
	{Name: "kind/quantities", Run: quantities},
	{Name: "kind/large-list", Run: largeList},
}

// template returns a Pod template that says much.
func template() corev1.PodTemplateSpec {
	probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
		HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromString("web")},
	}}
	container := corev1.Container{
		Name: "main", Image: "registry.example/main:1", Args: []string{"a", ""},
		Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: 8080}},
		Env: []corev1.EnvVar{{Name: "NODE", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"},
		}}},
		Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("0.5Gi")},
		},
		ReadinessProbe: probe,
		VolumeMounts:   []corev1.VolumeMount{{Name: "scratch", MountPath: "/tmp"}},
	}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "one"}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{container},
			Volumes: []corev1.Volume{
				{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			},
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), FSGroup: new(int64(0))},
		},
	}
}

// someOfEachKind returns objects named "one", of kinds that operators create.
func (t *T) someOfEachKind() []client.Object {
	about := metav1.ObjectMeta{Name: "one", Namespace: t.namespace}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "one"}}
	job := template()
	job.Spec.RestartPolicy = corev1.RestartPolicyNever
	claim := corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		},
	}
	return []client.Object{
		&corev1.ConfigMap{ObjectMeta: about, BinaryData: map[string][]byte{"bytes": {0, 255}}},
		&corev1.Service{ObjectMeta: about, Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, Selector: selector.MatchLabels,
			Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromString("web")}},
		}},
		&corev1.ServiceAccount{ObjectMeta: about, AutomountServiceAccountToken: new(false)},
		&corev1.PersistentVolumeClaim{ObjectMeta: about, Spec: claim},
		&corev1.Pod{ObjectMeta: about, Spec: job.Spec},
		&appsv1.Deployment{ObjectMeta: about, Spec: appsv1.DeploymentSpec{Selector: selector, Template: template()}},
		&appsv1.DaemonSet{ObjectMeta: about, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template()}},
		&appsv1.StatefulSet{ObjectMeta: about, Spec: appsv1.StatefulSetSpec{
			Selector: selector, Template: template(), ServiceName: "one",
		}},
		&batchv1.Job{ObjectMeta: about, Spec: batchv1.JobSpec{Template: withoutLabels(job), BackoffLimit: new(int32(0))}},
		&batchv1.CronJob{ObjectMeta: about, Spec: batchv1.CronJobSpec{
			Schedule: "*/5 * * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: job}},
		}},
		&autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: about, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			MaxReplicas:    3,
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "one"},
		}},
		&policyv1.PodDisruptionBudget{ObjectMeta: about, Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: new(intstr.FromString("50%")), Selector: selector,
		}},
		&networkingv1.Ingress{ObjectMeta: about, Spec: networkingv1.IngressSpec{
			DefaultBackend: &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
				Name: "one", Port: networkingv1.ServiceBackendPort{Number: 80},
			}},
		}},
		&networkingv1.NetworkPolicy{ObjectMeta: about, Spec: networkingv1.NetworkPolicySpec{
			PodSelector: *selector, Ingress: []networkingv1.NetworkPolicyIngressRule{{}},
		}},
		&rbacv1.Role{ObjectMeta: about, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: about,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
			Subjects:   []rbacv1.Subject{{Kind: "User", Name: "jane"}},
		},
		&coordinationv1.Lease{ObjectMeta: about, Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("one"), LeaseDurationSeconds: new(int32(15)),
		}},
		&discoveryv1.EndpointSlice{
			ObjectMeta: about, AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.9"}}},
			Ports:     []discoveryv1.EndpointPort{{Port: new(int32(80))}},
		},
		&storagev1.StorageClass{
			ObjectMeta: metav1.ObjectMeta{Name: t.namespace}, Provisioner: "example.com/none",
			Parameters: map[string]string{"type": "fast"},
		},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: t.namespace + "-other"}},
	}
}

// withoutLabels leaves the labels of a Job's Pods to the server.
func withoutLabels(template corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	template.Labels = nil
	return template
}

// protobufCreatesWhatJSONCreates creates each object in a dry run by both formats; the answers are equal but for what is
// new each time.
func protobufCreatesWhatJSONCreates(t *T) {
	config := t.newConfig()
	config.ContentType = runtime.ContentTypeJSON // controller-runtime takes protobuf where it can
	text, binary := client.NewDryRunClient(t.clientOf(config)), client.NewDryRunClient(t.client())
	for _, object := range t.someOfEachKind() {
		kind, err := text.GroupVersionKindFor(object)
		t.noError(err)
		one, other := object.DeepCopyObject().(client.Object), object.DeepCopyObject().(client.Object)
		t.Expect(text.Create(t.ctx, one)).To(Succeed(), kind.Kind)
		t.Expect(binary.Create(t.ctx, other)).To(Succeed(), kind.Kind)
		t.Expect(cmp.Diff(withoutIdentity(t, one), withoutIdentity(t, other))).To(BeEmpty(), kind.Kind)
	}
}

// withoutIdentity returns the tree of an object without what differs between two that are equal.
func withoutIdentity(t *T, object client.Object) map[string]any {
	uid := string(object.GetUID())
	object.SetUID("")
	object.SetCreationTimestamp(metav1.Time{})
	object.SetManagedFields(nil)
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	t.noError(err)
	return replaced(tree, uid, "UID").(map[string]any) // a Job's selector holds it
}

func replaced(value any, text, by string) any {
	switch typed := value.(type) {
	case map[string]any:
		for key, inner := range typed {
			typed[key] = replaced(inner, text, by)
		}
	case []any:
		for i, inner := range typed {
			typed[i] = replaced(inner, text, by)
		}
	case string:
		return strings.ReplaceAll(typed, text, by)
	}
	return value
}

func secretKind(t *T) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: t.namespace},
		Data:       map[string][]byte{"a": {0, 1}},
		StringData: map[string]string{"b": "text"},
	}
	c := t.client()
	t.noError(c.Create(t.ctx, secret))
	t.Expect(secret.Type).To(Equal(corev1.SecretTypeOpaque))
	t.Expect(secret.Data).To(Equal(map[string][]byte{"a": {0, 1}, "b": []byte("text")}))
	t.Expect(secret.StringData).To(BeEmpty())
	secret.Immutable = new(true)
	t.noError(c.Update(t.ctx, secret))
	secret.Data["a"] = nil
	t.Expect(c.Update(t.ctx, secret)).To(MatchError(ContainSubstring("field is immutable when `immutable` is set")))
}

func quantities(t *T) {
	pod := t.pod("one")
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("0.5"), corev1.ResourceMemory: resource.MustParse("1024Mi"),
	}
	t.noError(t.client().Create(t.ctx, pod))
	requests := pod.Spec.Containers[0].Resources.Requests
	t.Expect(requests.Cpu().String()).To(Equal("500m"))
	t.Expect(requests.Memory().String()).To(Equal("1Gi"))
	t.Expect(pod.Status.QOSClass).To(Equal(corev1.PodQOSBurstable))
}

// largeList reads a list that a server compresses.
func largeList(t *T) {
	c := t.client()
	for _, name := range strings.Split("abcdefghijklmnopqrst", "") {
		one := t.configMap(name)
		one.Data["key"] = strings.Repeat(name, 20_000)
		t.noError(c.Create(t.ctx, one))
	}
	list, err := t.typed().CoreV1().ConfigMaps(t.namespace).List(t.ctx, metav1.ListOptions{FieldSelector: notTheAuthority})
	t.noError(err)
	t.Expect(list.Items).To(HaveLen(20))
	for _, item := range list.Items {
		t.isTrue(item.Data["key"] == strings.Repeat(item.Name, 20_000), "%s came whole", item.Name)
	}
}

func serviceAddresses(t *T) {
	c := t.client()
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: t.namespace},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80}}},
	}
	t.noError(c.Create(t.ctx, service))
	t.Expect(service.Spec.ClusterIP).To(MatchRegexp(`^10\.`))
	t.Expect(service.Spec.ClusterIPs).To(Equal([]string{service.Spec.ClusterIP}))
	t.Expect(service.Spec.Ports[0].NodePort).To(And(BeNumerically(">=", 30000), BeNumerically("<=", 32767)))

	taken := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: t.namespace}}
	taken.Spec = corev1.ServiceSpec{ClusterIP: service.Spec.ClusterIP, Ports: []corev1.ServicePort{{Port: 80}}}
	err := c.Create(t.ctx, taken)
	t.isTrue(apierrors.IsInvalid(err), "an address that is taken is answered with %v", err)
	service.Spec.ClusterIP, service.Spec.ClusterIPs = "", nil
	t.noError(c.Update(t.ctx, service))
	t.Expect(service.Spec.ClusterIP).NotTo(BeEmpty(), "an update that leaves the address out keeps it")
}

func twoVersionsOfAutoscaler(t *T) {
	made := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: t.namespace},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			MaxReplicas:    3,
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "one"},
			Metrics: []autoscalingv2.MetricSpec{{
				Type: autoscalingv2.ResourceMetricSourceType,
				Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{
					Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(70)),
				}},
			}},
		},
	}
	t.noError(t.client().Create(t.ctx, made))
	older, err := t.typed().AutoscalingV1().HorizontalPodAutoscalers(t.namespace).Get(t.ctx, "one", metav1.GetOptions{})
	t.noError(err)
	t.Expect(older.UID).To(Equal(made.UID))
	t.Expect(older.Spec.TargetCPUUtilizationPercentage).To(HaveValue(Equal(int32(70))))
	older.Spec.TargetCPUUtilizationPercentage = new(int32(50))
	_, err = t.typed().AutoscalingV1().HorizontalPodAutoscalers(t.namespace).Update(t.ctx, older, metav1.UpdateOptions{})
	t.noError(err)
	t.noError(t.client().Get(t.ctx, client.ObjectKeyFromObject(made), made))
	t.Expect(made.Spec.Metrics[0].Resource.Target.AverageUtilization).To(HaveValue(Equal(int32(50))))
}
