package checks

import (
	"context"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

var envtestChecks = []Check{
	{Name: "envtest/add-user", NeedsEnvtest: true, Run: addUser},
	{Name: "envtest/two-at-once", NeedsEnvtest: true, Limit: time.Minute, Run: twoAtOnce},
}

// addUser asks envtest for a user: it signs a certificate by the authority that it gave the server.
func addUser(t *T) {
	user, err := t.envtest.AddUser(envtest.User{Name: "jane", Groups: []string{"painters"}}, t.newConfig())
	t.noError(err)
	jane := t.typedOf(user.Config())
	self, err := jane.AuthenticationV1().SelfSubjectReviews().Create(
		t.ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	t.noError(err)
	t.Expect(self.Status.UserInfo.Username).To(Equal("jane"))
	t.Expect(self.Status.UserInfo.Groups).To(ConsistOf("painters", "system:authenticated"))
	_, err = jane.CoreV1().ConfigMaps(t.namespace).List(t.ctx, metav1.ListOptions{})
	t.isTrue(apierrors.IsForbidden(err), "jane's list is answered with %v", err)
}

// twoAtOnce starts another server from the same binaries: they share nothing.
func twoAtOnce(t *T) {
	second := &envtest.Environment{
		BinaryAssetsDirectory: t.envtest.BinaryAssetsDirectory, UseExistingCluster: new(false),
	}
	config, err := second.Start()
	t.atTheEnd(func(context.Context) { _ = second.Stop() })
	t.noError(err)
	t.Expect(config.Host).NotTo(Equal(t.config.Host))
	_, err = t.typedOf(config).CoreV1().Namespaces().Get(t.ctx, t.namespace, metav1.GetOptions{})
	t.isTrue(apierrors.IsNotFound(err), "the first server's namespace is read on the second with %v", err)
	t.noError(second.Stop())
	_, err = t.typed().CoreV1().Namespaces().Get(t.ctx, t.namespace, metav1.GetOptions{})
	t.noError(err)
}
