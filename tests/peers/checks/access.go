package checks

import (
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var accessChecks = []Check{
	{Name: "access/token-request-and-review", Run: tokenRequestAndReview},
	{Name: "access/token-of-a-deleted-account", Run: tokenOfDeletedAccount},
	{Name: "access/forbidden-and-granted", Run: forbiddenAndGranted},
	{Name: "access/impersonation", Run: impersonation},
	{Name: "access/subject-access-review", Run: subjectAccessReview},
	{Name: "access/self-subject-review", Run: selfSubjectReview},
	{Name: "access/rules-review", Run: rulesReview},
	{Name: "access/no-escalation", Run: noEscalation},
	{Name: "access/unauthorized", Run: unauthorized},
}

// serviceAccount creates an account and returns a token of it.
func (t *T) serviceAccount(name string) string {
	accounts := t.typed().CoreV1().ServiceAccounts(t.namespace)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := accounts.Create(t.ctx, account, metav1.CreateOptions{})
	t.noError(err)
	answer, err := accounts.CreateToken(t.ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(3600))},
	}, metav1.CreateOptions{})
	t.noError(err)
	t.Expect(answer.Status.Token).NotTo(BeEmpty())
	t.Expect(answer.Status.ExpirationTimestamp.IsZero()).To(BeFalse())
	return answer.Status.Token
}

func (t *T) accountName(name string) string {
	return "system:serviceaccount:" + t.namespace + ":" + name
}

// as returns a client that shows the token.
func (t *T) as(token string) kubernetes.Interface {
	config := rest.AnonymousClientConfig(t.config)
	config.QPS = t.config.QPS
	config.BearerToken = token
	return t.typedOf(config)
}

func (t *T) review(token string, audiences ...string) authenticationv1.TokenReviewStatus {
	answer, err := t.typed().AuthenticationV1().TokenReviews().Create(t.ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences},
	}, metav1.CreateOptions{})
	t.noError(err)
	return answer.Status
}

func tokenRequestAndReview(t *T) {
	token := t.serviceAccount("peer")
	status := t.review(token)
	t.isTrue(status.Authenticated, "the token is good: %s", status.Error)
	t.Expect(status.User.Username).To(Equal(t.accountName("peer")))
	t.Expect(status.User.Groups).To(ContainElements(
		"system:serviceaccounts", "system:serviceaccounts:"+t.namespace, "system:authenticated"))
	t.Expect(status.User.UID).NotTo(BeEmpty())
	t.Expect(status.Audiences).NotTo(BeEmpty())

	t.Expect(t.review(token, "another-audience").Authenticated).To(BeFalse())
	bad := t.review("no token")
	t.Expect(bad.Authenticated).To(BeFalse())
	t.Expect(bad.Error).NotTo(BeEmpty())
}

func tokenOfDeletedAccount(t *T) {
	token := t.serviceAccount("peer")
	t.isTrue(t.review(token).Authenticated, "the token is good")
	t.noError(t.typed().CoreV1().ServiceAccounts(t.namespace).Delete(t.ctx, "peer", metav1.DeleteOptions{}))
	// a server may remember a token for some seconds
	t.Eventually(func() bool { return t.review(token).Authenticated }, "25s", "200ms").Should(BeFalse())
}

func forbiddenAndGranted(t *T) {
	maps := t.as(t.serviceAccount("peer")).CoreV1().ConfigMaps(t.namespace)
	_, err := maps.List(t.ctx, metav1.ListOptions{})
	t.isTrue(apierrors.IsForbidden(err), "a list without a grant is answered with %v", err)
	t.Expect(err.Error()).To(Equal(`configmaps is forbidden: User "` + t.accountName("peer") +
		`" cannot list resource "configmaps" in API group "" in the namespace "` + t.namespace + `"`))

	t.grant("peer", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}})
	t.Eventually(func() error {
		_, err := maps.List(t.ctx, metav1.ListOptions{})
		return err
	}).Should(Succeed())
	_, err = maps.Create(t.ctx, t.configMap("one"), metav1.CreateOptions{})
	t.isTrue(apierrors.IsForbidden(err), "a create without a grant is answered with %v", err)
	_, err = maps.Watch(t.ctx, metav1.ListOptions{})
	t.isTrue(apierrors.IsForbidden(err), "a watch without a grant is answered with %v", err)
}

// grant lets the service account do what the rules say, in the check's namespace.
func (t *T) grant(account string, rules ...rbacv1.PolicyRule) {
	c := t.client()
	about := metav1.ObjectMeta{Name: account, Namespace: t.namespace}
	t.noError(c.Create(t.ctx, &rbacv1.Role{ObjectMeta: about, Rules: rules}))
	t.noError(c.Create(t.ctx, &rbacv1.RoleBinding{
		ObjectMeta: about,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: t.namespace}},
	}))
}

func impersonation(t *T) {
	config := t.newConfig()
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "jane", Groups: []string{"painters"}, Extra: map[string][]string{"scopes": {"one"}},
	}
	jane := t.typedOf(config)
	self, err := jane.AuthenticationV1().SelfSubjectReviews().Create(
		t.ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	t.noError(err)
	t.Expect(self.Status.UserInfo.Username).To(Equal("jane"))
	t.Expect(self.Status.UserInfo.Groups).To(ConsistOf("painters", "system:authenticated"))
	t.Expect(self.Status.UserInfo.Extra).To(HaveKeyWithValue("scopes", authenticationv1.ExtraValue{"one"}))
	_, err = jane.CoreV1().Secrets(t.namespace).List(t.ctx, metav1.ListOptions{})
	t.isTrue(apierrors.IsForbidden(err), "jane's list is answered with %v", err)
}

func subjectAccessReview(t *T) {
	t.serviceAccount("peer")
	t.grant("peer", rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"mine"}, Verbs: []string{"get"},
	})
	may := func(name string) bool {
		answer, err := t.typed().AuthorizationV1().SubjectAccessReviews().Create(t.ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User: t.accountName("peer"),
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: t.namespace, Verb: "get", Resource: "secrets", Name: name,
				},
			},
		}, metav1.CreateOptions{})
		t.noError(err)
		return answer.Status.Allowed
	}
	t.Eventually(may).WithArguments("mine").Should(BeTrue())
	t.Expect(may("yours")).To(BeFalse())

	local, err := t.typed().AuthorizationV1().LocalSubjectAccessReviews(t.namespace).Create(t.ctx,
		&authorizationv1.LocalSubjectAccessReview{
			ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace},
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User: "nobody",
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: t.namespace, Verb: "get", Resource: "secrets",
				},
			},
		}, metav1.CreateOptions{})
	t.noError(err)
	t.Expect(local.Status.Allowed).To(BeFalse())
}

func selfSubjectReview(t *T) {
	token := t.serviceAccount("peer")
	self, err := t.as(token).AuthenticationV1().SelfSubjectReviews().Create(
		t.ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	t.noError(err)
	t.Expect(self.Status.UserInfo.Username).To(Equal(t.accountName("peer")))

	mine, err := t.typed().AuthorizationV1().SelfSubjectAccessReviews().Create(t.ctx,
		&authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"},
		}}, metav1.CreateOptions{})
	t.noError(err)
	t.Expect(mine.Status.Allowed).To(BeTrue())
}

func rulesReview(t *T) {
	token := t.serviceAccount("peer")
	t.grant("peer", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"watch"}})
	t.Eventually(func(g Gomega) {
		answer, err := t.as(token).AuthorizationV1().SelfSubjectRulesReviews().Create(t.ctx,
			&authorizationv1.SelfSubjectRulesReview{
				Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: t.namespace},
			}, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(answer.Status.ResourceRules).To(ContainElement(authorizationv1.ResourceRule{
			Verbs: []string{"watch"}, APIGroups: []string{""}, Resources: []string{"pods"},
		}))
	}).Should(Succeed())
}

func noEscalation(t *T) {
	token := t.serviceAccount("peer")
	t.grant("peer", rbacv1.PolicyRule{
		APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}, Verbs: []string{"create", "get"},
	})
	roles := t.as(token).RbacV1().Roles(t.namespace)
	t.Eventually(func(g Gomega) { // until the grant works
		_, err := roles.Get(t.ctx, "peer", metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
	}).Should(Succeed())
	more := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "more"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}},
	}
	_, err := roles.Create(t.ctx, more, metav1.CreateOptions{})
	t.isTrue(apierrors.IsForbidden(err), "a role of more than one has is answered with %v", err)
	t.Expect(err.Error()).To(ContainSubstring("is attempting to grant RBAC permissions not currently held"))
	t.noError(client.IgnoreAlreadyExists(t.client().Create(t.ctx, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "more", Namespace: t.namespace}, Rules: more.Rules,
	})))
}

func unauthorized(t *T) {
	_, err := t.as("no token").CoreV1().ConfigMaps(t.namespace).List(t.ctx, metav1.ListOptions{})
	t.isTrue(apierrors.IsUnauthorized(err), "a wrong token is answered with %v", err)
	_, err = t.as("").CoreV1().ConfigMaps(t.namespace).List(t.ctx, metav1.ListOptions{})
	t.isTrue(apierrors.IsForbidden(err), "nobody's list is answered with %v", err)
	t.Expect(err.Error()).To(ContainSubstring(`User "system:anonymous" cannot list resource "configmaps"`))
}
