package checks

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var listChecks = []Check{
	{Name: "list/label-selector", Run: labelSelector},
	{Name: "list/field-selector", Run: fieldSelector},
	{Name: "list/selectable-field", Run: selectableField},
	{Name: "list/pages", Run: pages},
	{Name: "list/pages-are-one-snapshot", Run: pagesAreSnapshot},
	{Name: "list/pager", Run: listPager},
	{Name: "list/continue-token-is-checked", Run: continueTokenChecked},
	{Name: "list/resource-version-match", Run: resourceVersionMatch},
	{Name: "list/future-version", Run: futureVersion},
}

// createMaps creates ConfigMaps with the names map-00, map-01, …
func (t *T) createMaps(count int) {
	c := t.client()
	for i := range count {
		t.noError(c.Create(t.ctx, t.configMap(fmt.Sprintf("map-%02d", i))))
	}
}

func labelSelector(t *T) {
	c := t.client()
	for name, labels := range map[string]map[string]string{
		"plain": nil, "red": {"color": "red"}, "blue": {"color": "blue", "size": "2"},
	} {
		one := t.configMap(name)
		one.Labels = labels
		one.Data = map[string]string{"mine": "yes"}
		t.noError(c.Create(t.ctx, one))
	}
	maps := t.typed().CoreV1().ConfigMaps(t.namespace)
	for selector, wanted := range map[string][]string{
		"color=red":              {"red"},
		"color!=red,size":        {"blue"},
		"color in (red,blue)":    {"red", "blue"},
		"color notin (red)":      {"blue", "plain"},
		"!color":                 {"plain"},
		"size>1":                 {"blue"},
		"color==blue,size in(2)": {"blue"},
	} {
		list, err := maps.List(t.ctx, metav1.ListOptions{LabelSelector: selector, FieldSelector: "metadata.name!=kube-root-ca.crt"})
		t.noError(err)
		t.Expect(mapNames(list)).To(ConsistOf(wanted), selector)
	}
	_, err := maps.List(t.ctx, metav1.ListOptions{LabelSelector: "color in red"})
	t.isTrue(apierrors.IsBadRequest(err), "a broken selector is answered with %v", err)
}

// mapNames leaves out the ConfigMap that a controller puts into each namespace, sooner or later.
func mapNames(list *corev1.ConfigMapList) []string {
	found := []string{}
	for _, item := range list.Items {
		if item.Name != "kube-root-ca.crt" {
			found = append(found, item.Name)
		}
	}
	return found
}

func fieldSelector(t *T) {
	pod := t.pod("one")
	other := t.pod("other")
	other.Spec.NodeName = "none-such"
	c := t.client()
	t.noError(c.Create(t.ctx, pod))
	t.noError(c.Create(t.ctx, other))
	pods := t.typed().CoreV1().Pods(t.namespace)
	for selector, wanted := range map[string]int{
		"metadata.name=one":                         1,
		"metadata.namespace=" + t.namespace:         2,
		"spec.nodeName=none-such":                   1,
		"spec.nodeName=,status.phase=Pending":       1,
		"status.phase!=Pending":                     0,
		"spec.restartPolicy=Never":                  2,
		"spec.schedulerName=" + noScheduler:         2,
		"metadata.name=one,spec.nodeName=none-such": 0,
	} {
		list, err := pods.List(t.ctx, metav1.ListOptions{FieldSelector: selector})
		t.noError(err)
		t.Expect(list.Items).To(HaveLen(wanted), selector)
	}
	_, err := pods.List(t.ctx, metav1.ListOptions{FieldSelector: "spec.hostname=x"})
	t.isTrue(apierrors.IsBadRequest(err), "a field that cannot be selected is answered with %v", err)
}

func selectableField(t *T) {
	t.needWidgets()
	c := t.client()
	red := t.widget("red")
	red.Spec.Color = "red"
	t.noError(c.Create(t.ctx, red))
	t.noError(c.Create(t.ctx, t.widget("grey")))

	list := &WidgetList{}
	t.noError(c.List(t.ctx, list, client.InNamespace(t.namespace), client.MatchingFields{"spec.color": "red"}))
	t.Expect(list.Items).To(HaveLen(1))
	t.Expect(list.Items[0].Name).To(Equal("red"))
	err := c.List(t.ctx, list, client.InNamespace(t.namespace), client.MatchingFields{"spec.size": "3"})
	t.isTrue(apierrors.IsBadRequest(err), "a field that is not declared is answered with %v", err)
}

func pages(t *T) {
	t.createMaps(7)
	maps := t.typed().CoreV1().ConfigMaps(t.namespace)
	options := metav1.ListOptions{Limit: 3}
	var found []string
	for {
		page, err := maps.List(t.ctx, options)
		t.noError(err)
		found = append(found, mapNames(page)...)
		if page.Continue == "" {
			t.Expect(page.RemainingItemCount).To(BeNil())
			break
		}
		t.Expect(page.Items).To(HaveLen(3))
		t.Expect(page.RemainingItemCount).NotTo(BeNil())
		options.Continue = page.Continue
	}
	whole, err := maps.List(t.ctx, metav1.ListOptions{})
	t.noError(err)
	t.Expect(found).To(Equal(mapNames(whole)))
}

func pagesAreSnapshot(t *T) {
	t.createMaps(4)
	maps := t.typed().CoreV1().ConfigMaps(t.namespace)
	first, err := maps.List(t.ctx, metav1.ListOptions{Limit: 2, FieldSelector: "metadata.name!=kube-root-ca.crt"})
	t.noError(err)
	t.noError(maps.Delete(t.ctx, "map-03", metav1.DeleteOptions{}))
	t.noError(t.client().Create(t.ctx, t.configMap("zzz")))

	rest, err := maps.List(t.ctx, metav1.ListOptions{Continue: first.Continue, FieldSelector: "metadata.name!=kube-root-ca.crt"})
	t.noError(err)
	t.Expect(append(mapNames(first), mapNames(rest)...)).To(Equal([]string{"map-00", "map-01", "map-02", "map-03"}))
	t.Expect(rest.ResourceVersion).To(Equal(first.ResourceVersion))
}

func listPager(t *T) {
	t.createMaps(7)
	maps := t.typed().CoreV1().ConfigMaps(t.namespace)
	reader := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return maps.List(ctx, options)
	})
	reader.PageSize = 2
	count := 0
	t.noError(reader.EachListItem(t.ctx, metav1.ListOptions{}, func(runtime.Object) error {
		count++
		return nil
	}))
	t.Expect(count).To(BeNumerically(">=", 7))
}

func continueTokenChecked(t *T) {
	t.createMaps(2)
	maps := t.typed().CoreV1().ConfigMaps(t.namespace)
	_, err := maps.List(t.ctx, metav1.ListOptions{Limit: 1, Continue: "no token"})
	t.isTrue(apierrors.IsBadRequest(err), "a token that is none is answered with %v", err)
	first, err := maps.List(t.ctx, metav1.ListOptions{Limit: 1})
	t.noError(err)
	both := metav1.ListOptions{Limit: 1, Continue: first.Continue, ResourceVersion: first.ResourceVersion}
	_, err = maps.List(t.ctx, both)
	t.isTrue(apierrors.IsBadRequest(err), "a token with a version is answered with %v", err)
}

func resourceVersionMatch(t *T) {
	t.createMaps(1)
	maps := t.typed().CoreV1().ConfigMaps(t.namespace)
	before, err := maps.List(t.ctx, metav1.ListOptions{})
	t.noError(err)
	t.noError(t.client().Create(t.ctx, t.configMap("later")))

	exact := metav1.ListOptions{ResourceVersion: before.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact}
	then, err := maps.List(t.ctx, exact)
	t.noError(err)
	t.Expect(then.ResourceVersion).To(Equal(before.ResourceVersion))
	t.Expect(mapNames(then)).NotTo(ContainElement("later"))

	atLeast := exact
	atLeast.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
	now, err := maps.List(t.ctx, atLeast)
	t.noError(err)
	t.Expect(mapNames(now)).To(ContainElement("map-00"))

	_, err = maps.List(t.ctx, metav1.ListOptions{ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	t.isTrue(apierrors.IsInvalid(err), "a match without a version is answered with %v", err)
}

// listOfTheFuture asks for a version that does not exist yet, once: the client itself would try again.
func (t *T) listOfTheFuture() error {
	list := t.raw().Get().AbsPath("/api/v1/namespaces", t.namespace, "configmaps")
	return list.Param("resourceVersion", "9000000000000000000").MaxRetries(0).Do(t.ctx).Error()
}

func futureVersion(t *T) {
	began := time.Now()
	err := t.listOfTheFuture()
	t.isTrue(apierrors.IsTimeout(err), "a version of the future is answered with %v", err)
	t.isTrue(apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge), "the cause is in %#v", err)
	t.Expect(time.Since(began)).To(BeNumerically(">", time.Second), "the server waits for the version for a while")
}
