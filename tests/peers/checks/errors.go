package checks

import (
	"net/http"
	"strings"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

var errorChecks = []Check{
	{Name: "error/not-found", Run: notFound},
	{Name: "error/already-exists", Run: alreadyExists},
	{Name: "error/invalid-with-causes", Run: invalidWithCauses},
	{Name: "error/bad-request", Run: badRequest},
	{Name: "error/too-large", Run: tooLarge},
	{Name: "error/method-not-supported", Run: methodNotSupported},
	{Name: "error/not-acceptable", Run: notAcceptable},
	{Name: "error/unsupported-media-type", Run: unsupportedMediaType},
	{Name: "error/namespace-missing", Run: namespaceMissing},
	{Name: "error/namespace-terminating", Run: namespaceTerminating},
	{Name: "error/timeout", Run: requestTimeout},
}

// status returns what the error says to machines.
func (t *T) status(err error) metav1.Status {
	status, is := err.(apierrors.APIStatus)
	t.isTrue(is, "the error is %#v", err)
	return status.Status()
}

func notFound(t *T) {
	_, err := t.typed().CoreV1().ConfigMaps(t.namespace).Get(t.ctx, "none", metav1.GetOptions{})
	t.isTrue(apierrors.IsNotFound(err), "a name that is not there is answered with %v", err)
	status := t.status(err)
	t.Expect(status.Code).To(Equal(int32(http.StatusNotFound)))
	t.Expect(status.Details.Name).To(Equal("none"))
	t.Expect(status.Details.Kind).To(Equal("configmaps"))
	t.Expect(status.Message).To(Equal(`configmaps "none" not found`))

	_, err = t.dynamic().Resource(corev1.SchemeGroupVersion.WithResource("nonesuch")).List(t.ctx, metav1.ListOptions{})
	t.isTrue(apierrors.IsNotFound(err), "a resource that is not there is answered with %v", err)
	t.Expect(err.Error()).To(Equal("the server could not find the requested resource"))
}

func alreadyExists(t *T) {
	t.createMap()
	err := t.client().Create(t.ctx, t.configMap("one"))
	t.isTrue(apierrors.IsAlreadyExists(err), "a second create is answered with %v", err)
	t.Expect(t.status(err).Message).To(Equal(`configmaps "one" already exists`))
}

func invalidWithCauses(t *T) {
	wrong := t.configMap("Not_A_Name")
	wrong.Data = map[string]string{"not/a/key": ""}
	err := t.client().Create(t.ctx, wrong)
	t.isTrue(apierrors.IsInvalid(err), "a wrong ConfigMap is answered with %v", err)
	t.Expect(causes(err)).To(HaveKeyWithValue("metadata.name", metav1.CauseTypeFieldValueInvalid))
	t.Expect(causes(err)).To(HaveKeyWithValue("data[not/a/key]", metav1.CauseTypeFieldValueInvalid))

	web := t.deployment("web")
	web.Spec.Selector.MatchLabels = map[string]string{"app": "another"}
	web.Spec.Template.Spec.Containers[0].Name = ""
	err = t.client().Create(t.ctx, web)
	t.isTrue(apierrors.IsInvalid(err), "a wrong Deployment is answered with %v", err)
	t.Expect(causes(err)).To(Equal(map[string]metav1.CauseType{
		"spec.template.metadata.labels":         metav1.CauseTypeFieldValueInvalid,
		"spec.template.spec.containers[0].name": metav1.CauseTypeFieldValueRequired,
	}))
}

// raw returns a client that sends what it is given.
func (t *T) raw() rest.Interface {
	return t.typedOf(t.newConfig()).CoreV1().RESTClient()
}

// post sends a body to the ConfigMaps of the check's namespace.
func (t *T) post(contentType, body string) error {
	request := t.raw().Post().AbsPath("/api/v1/namespaces", t.namespace, "configmaps")
	return request.SetHeader("Content-Type", contentType).Body([]byte(body)).Do(t.ctx).Error()
}

func badRequest(t *T) {
	for _, body := range []string{
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"},"data":{"key":1}}`,
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"one"}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one","namespace":"another"}}`,
		`{`,
	} {
		err := t.post("application/json", body)
		t.isTrue(apierrors.IsBadRequest(err), "%s is answered with %v", body, err)
	}
}

func tooLarge(t *T) {
	huge := t.configMap("one")
	huge.Data["key"] = strings.Repeat("x", 4<<20)
	err := t.client().Create(t.ctx, huge)
	t.isTrue(apierrors.IsRequestEntityTooLargeError(err), "a body of 4 MiB is answered with %v", err)
	big := t.configMap("one")
	big.Data["key"] = strings.Repeat("x", 1<<20+1)
	err = t.client().Create(t.ctx, big)
	t.isTrue(apierrors.IsInvalid(err), "data of more than 1 MiB is answered with %v", err)
}

func methodNotSupported(t *T) {
	err := t.raw().Delete().AbsPath("/api/v1/nodes", "none", "status").Do(t.ctx).Error()
	t.isTrue(apierrors.IsMethodNotSupported(err), "a status that is deleted is answered with %v", err)
}

func notAcceptable(t *T) {
	err := t.raw().Get().AbsPath("/api/v1/namespaces", t.namespace).
		SetHeader("Accept", "application/vnd.unknown").Do(t.ctx).Error()
	t.isTrue(apierrors.IsNotAcceptable(err), "a format that is not there is answered with %v", err)
}

func unsupportedMediaType(t *T) {
	t.createMap()
	_, err := t.patchMap(types.PatchType("application/x-none"), "{}")
	t.isTrue(apierrors.IsUnsupportedMediaType(err), "a patch of no known type is answered with %v", err)
	err = t.post("text/plain", "{}")
	t.isTrue(apierrors.IsUnsupportedMediaType(err), "a body of no known type is answered with %v", err)
}

func namespaceMissing(t *T) {
	_, err := t.typed().CoreV1().ConfigMaps("none-such").Create(t.ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one"}}, metav1.CreateOptions{})
	t.isTrue(apierrors.IsNotFound(err), "a create in no namespace is answered with %v", err)
	t.Expect(t.status(err).Details.Kind).To(Equal("namespaces"))
}

func namespaceTerminating(t *T) {
	c := t.client()
	held := t.configMap("held") // so that the namespace stays where somebody empties it
	held.Finalizers = []string{"peers.example.com/hold"}
	t.noError(c.Create(t.ctx, held))
	t.noError(c.Delete(t.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: t.namespace}}))

	err := c.Create(t.ctx, t.configMap("late"))
	t.isTrue(apierrors.IsForbidden(err), "a create in a namespace that ends is answered with %v", err)
	t.isTrue(apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), "the cause is in %#v", err)

	t.Eventually(func() error {
		return c.Patch(t.ctx, held.DeepCopy(), mergePatchOf(`{"metadata":{"finalizers":null}}`))
	}).Should(Succeed())
}

func requestTimeout(t *T) {
	err := t.listOfTheFuture()
	t.isTrue(apierrors.IsTimeout(err), "a version of the future is answered with %v", err)
	seconds, suggested := apierrors.SuggestsClientDelay(err)
	t.isTrue(suggested && seconds >= 1, "the answer says when to come again: %#v", err)
}
