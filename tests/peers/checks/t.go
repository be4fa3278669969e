package checks

import (
	"context"
	"net/http"
	goruntime "runtime"
	"strings"
	"sync"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const (
	eventually   = 2 * time.Minute // a wait that succeeds costs nothing
	pollInterval = 20 * time.Millisecond
)

// T is what a check works with: a time limit, a namespace, clients of each sort, and gomega's expectations.
type T struct {
	gomega.Gomega
	failure

	ctx       context.Context
	config    *rest.Config
	namespace string
	check     string
	envtest   *envtest.Environment
	shared    *sharedState
	cleanups  []func(context.Context)
}

func newT(ctx context.Context, check string, config *rest.Config, shared *sharedState) *T {
	t := &T{ctx: ctx, check: check, config: config, envtest: shared.envtest, shared: shared}
	t.Gomega = gomega.NewGomega(func(message string, _ ...int) {
		t.fail(caller() + ": " + message)
		goruntime.Goexit()
	})
	t.SetDefaultEventuallyTimeout(eventually)
	t.SetDefaultEventuallyPollingInterval(pollInterval)
	t.SetDefaultConsistentlyPollingInterval(pollInterval)
	return t
}

// noError ends the check unless err is nil.
func (t *T) noError(err error) {
	t.Expect(err).NotTo(gomega.HaveOccurred())
}

// isTrue ends the check with the message unless the claim holds. The arguments are those of fmt.Sprintf.
func (t *T) isTrue(claim bool, message string, arguments ...any) {
	t.Expect(claim).To(gomega.BeTrue(), append([]any{message}, arguments...)...)
}

// atTheEnd keeps a call for after the check, with a context of its own; the last one kept comes first.
func (t *T) atTheEnd(call func(context.Context)) {
	t.cleanups = append(t.cleanups, call)
}

func (t *T) cleanUp() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), grace/2)
	defer cancel()
	for i := len(t.cleanups) - 1; i >= 0; i-- {
		t.cleanups[i](ctx)
	}
}

// background runs the function until the check is over, and waits for it then.
func (t *T) background(run func(context.Context)) {
	ctx, cancel := context.WithCancel(t.ctx)
	var group sync.WaitGroup
	group.Go(func() { run(ctx) })
	t.atTheEnd(func(context.Context) {
		cancel()
		group.Wait()
	})
}

// together runs the function so many times at once, with the numbers from 0, and waits.
func (t *T) together(times int, run func(number int)) {
	var group sync.WaitGroup
	for number := range times {
		group.Go(func() { run(number) })
	}
	group.Wait()
	t.isTrue(t.failed() == "", "each of them succeeds")
}

// createNamespace gives the check its namespace.
func (t *T) createNamespace() {
	t.namespace = t.newNamespace()
}

func (t *T) newNamespace() string {
	prefix := "peers-" + strings.ReplaceAll(t.check, "/", "-") + "-"
	namespaces := t.typed().CoreV1().Namespaces()
	made, err := namespaces.Create(
		t.ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix}},
		metav1.CreateOptions{},
	)
	t.noError(err)
	t.shared.keep(made.Name)
	return made.Name
}

// newConfig returns a configuration that the check may change.
func (t *T) newConfig() *rest.Config {
	return rest.CopyConfig(t.config)
}

// typed returns the generated client. It speaks protobuf, as the components of a cluster do.
func (t *T) typed() kubernetes.Interface {
	config := t.newConfig()
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return t.typedOf(config)
}

func (t *T) typedOf(config *rest.Config) kubernetes.Interface {
	made, err := kubernetes.NewForConfig(config)
	t.noError(err)
	return made
}

func (t *T) dynamic() dynamic.Interface {
	made, err := dynamic.NewForConfig(t.newConfig())
	t.noError(err)
	return made
}

func (t *T) metadata() metadata.Interface {
	made, err := metadata.NewForConfig(t.newConfig())
	t.noError(err)
	return made
}

func (t *T) discovery() *discovery.DiscoveryClient {
	made, err := discovery.NewDiscoveryClientForConfig(t.newConfig())
	t.noError(err)
	return made
}

// client returns controller-runtime's client, which reads from the server.
func (t *T) client() client.WithWatch {
	return t.clientOf(t.newConfig())
}

func (t *T) clientOf(config *rest.Config) client.WithWatch {
	made, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	t.noError(err)
	return made
}

// httpClient returns a plain client with the credentials and trust of the configuration.
func (t *T) httpClient() *http.Client {
	made, err := rest.HTTPClientFor(t.newConfig())
	t.noError(err)
	return made
}

// scheme knows the built-in kinds, definitions, and the kinds of this package.
var scheme = newScheme()

func newScheme() *runtime.Scheme {
	made := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, addWidgets, addGadgets,
	} {
		if err := add(made); err != nil {
			panic(err)
		}
	}
	return made
}

// sharedState is what the checks of one run have in common: the definition of Widgets, installed by the first that
// needs it, and the namespaces. These go when all checks have run, since emptying one is work for the server.
type sharedState struct {
	envtest    *envtest.Environment
	mutex      sync.Mutex
	installed  bool
	namespaces []string
}

func (s *sharedState) installWidgets(config *rest.Config) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.installed {
		return nil
	}
	_, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{
		CRDs: []*apiextensionsv1.CustomResourceDefinition{widgetDefinition()},
	})
	s.installed = err == nil
	return err
}

func (s *sharedState) keep(namespace string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.namespaces = append(s.namespaces, namespace)
}

// cleanUp begins to delete what is left; a server that is about to end may not finish it.
func (s *sharedState) cleanUp(config *rest.Config) {
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, name := range s.namespaces {
		_ = c.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	if s.installed {
		_ = c.Delete(ctx, widgetDefinition())
	}
}

// needWidgets makes the server serve Widgets.
func (t *T) needWidgets() {
	t.noError(t.shared.installWidgets(t.newConfig()))
}
