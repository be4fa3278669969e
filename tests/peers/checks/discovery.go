package checks

import (
	"fmt"
	"strings"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

var discoveryChecks = []Check{
	{Name: "discovery/version", Run: serverVersion},
	{Name: "discovery/aggregated", Run: aggregatedDiscovery},
	{Name: "discovery/legacy-equals-aggregated", Run: legacyDiscovery},
	{Name: "discovery/preferred", Run: preferredResources},
	{Name: "discovery/custom-kind-appears", Run: customKindAppears},
	{Name: "discovery/openapi-v3", Run: openAPIv3},
	{Name: "discovery/openapi-v3-of-a-definition", Run: openAPIv3OfDefinition},
	{Name: "mapper/definition-appears-later", Run: mapperSeesLaterDefinition},
	{Name: "mapper/version-appears-later", Run: mapperSeesLaterVersion},
	{Name: "mapper/deferred", Run: deferredMapper},
	{Name: "mapper/short-names", Run: shortNames},
}

func serverVersion(t *T) {
	version, err := t.discovery().ServerVersion()
	t.noError(err)
	t.Expect(version.GitVersion).To(HavePrefix("v1."))
	t.Expect(version.Major).To(Equal("1"))
}

func aggregatedDiscovery(t *T) {
	groups, resources, failed, err := t.discovery().GroupsAndMaybeResources()
	t.noError(err)
	t.Expect(failed).To(BeEmpty())
	t.Expect(resources).NotTo(BeEmpty(), "the groups come together with their resources")
	t.Expect(groups.Groups[0].Name).To(BeEmpty(), "the core group is the first")

	deployments := map[string]metav1.APIResource{}
	for _, resource := range resources[appsv1.SchemeGroupVersion].APIResources {
		deployments[resource.Name] = resource
	}
	t.Expect(deployments["deployments"].ShortNames).To(Equal([]string{"deploy"}))
	t.Expect(deployments["deployments"].Verbs).To(ConsistOf(
		"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"))
	t.Expect(deployments["deployments/scale"].Kind).To(Equal("Scale"))
	t.Expect(deployments["deployments/status"].Verbs).To(ConsistOf("get", "patch", "update"))
}

func legacyDiscovery(t *T) {
	legacy := t.discovery()
	legacy.UseLegacyDiscovery = true
	_, aggregated, err := t.discovery().ServerGroupsAndResources()
	t.noError(err)
	for _, together := range aggregated {
		if strings.Contains(together.GroupVersion, ".example.com/") {
			continue // other checks add and remove theirs meanwhile
		}
		alone, err := legacy.ServerResourcesForGroupVersion(together.GroupVersion)
		t.noError(err)
		t.Expect(resourceLines(alone)).To(ConsistOf(resourceLines(together)), together.GroupVersion)
	}
}

// resourceLines returns a line for each resource of a version.
func resourceLines(list *metav1.APIResourceList) []string {
	var lines []string
	for _, resource := range list.APIResources {
		if strings.Contains(resource.Name, "/") {
			resource.SingularName = "" // client-go gives a subresource its parent's
		}
		lines = append(lines, fmt.Sprintf("%s %s %t %q %v %v %v", resource.Name, resource.Kind, resource.Namespaced,
			resource.SingularName, resource.ShortNames, resource.Categories, resource.Verbs))
	}
	return lines
}

func preferredResources(t *T) {
	lists, err := t.discovery().ServerPreferredResources()
	t.noError(err)
	preferred := map[string]string{}
	for _, list := range lists {
		for _, resource := range list.APIResources {
			preferred[resource.Name+"/"+strings.Split(list.GroupVersion, "/")[0]] = list.GroupVersion
		}
	}
	t.Expect(preferred).To(HaveKeyWithValue("horizontalpodautoscalers/autoscaling", "autoscaling/v2"))
	t.Expect(preferred).To(HaveKeyWithValue("deployments/apps", "apps/v1"))
	t.Expect(preferred).To(HaveKeyWithValue("pods/v1", "v1"))
}

// ownKind returns a kind that only this check knows, in a group of its own.
func (t *T) ownKind(name string) (schema.GroupVersionKind, schema.GroupVersionResource) {
	version := schema.GroupVersion{Group: t.namespace + ".example.com", Version: "v1"}
	return version.WithKind(name), version.WithResource(strings.ToLower(name) + "s")
}

// install installs the definition by envtest, which waits until it is served, and removes it at the end.
func (t *T) install(definition *apiextensionsv1.CustomResourceDefinition) {
	options := envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{definition}}
	_, err := envtest.InstallCRDs(t.newConfig(), options)
	t.noError(err)
	t.uninstallAtTheEnd(definition)
}

func customKindAppears(t *T) {
	kind, resource := t.ownKind("Thing")
	version := kind.GroupVersion().String()
	before, err := t.discovery().ServerGroups()
	t.noError(err)
	t.Expect(groupNames(before)).NotTo(ContainElement(kind.Group))

	definition := definitionOf(kind, resource)
	definition.Spec.Names.ShortNames = []string{"th"}
	definition.Spec.Names.Categories = []string{"all"}
	t.install(definition)

	for _, legacy := range []bool{false, true} {
		from := t.discovery()
		from.UseLegacyDiscovery = legacy
		t.Eventually(func(g Gomega) {
			list, err := from.ServerResourcesForGroupVersion(version)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(list.APIResources).To(HaveLen(1))
			g.Expect(list.APIResources[0].ShortNames).To(Equal([]string{"th"}))
			g.Expect(list.APIResources[0].Categories).To(Equal([]string{"all"}))
			g.Expect(list.APIResources[0].SingularName).To(Equal("thing"))
		}).Should(Succeed())
	}

	t.noError(t.client().Delete(t.ctx, definition))
	t.Eventually(func(g Gomega) {
		after, err := t.discovery().ServerGroups()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(groupNames(after)).NotTo(ContainElement(kind.Group))
	}).Should(Succeed())
}

func groupNames(groups *metav1.APIGroupList) []string {
	var found []string
	for _, group := range groups.Groups {
		found = append(found, group.Name)
	}
	return found
}

func openAPIv3(t *T) {
	root := openapi3.NewRoot(t.discovery().OpenAPIV3())
	versions, err := root.GroupVersions()
	t.noError(err)
	t.Expect(versions).To(ContainElements(
		appsv1.SchemeGroupVersion, schema.GroupVersion{Version: "v1"}, apiextensionsv1.SchemeGroupVersion))
	document, err := root.GVSpec(appsv1.SchemeGroupVersion)
	t.noError(err)
	deployment := document.Components.Schemas["io.k8s.api.apps.v1.Deployment"]
	t.isTrue(deployment != nil, "apps/v1 describes Deployment")
	t.Expect(deployment.Properties).To(HaveKey("spec"))
	t.Expect(deployment.Extensions).To(HaveKey("x-kubernetes-group-version-kind"))
	t.Expect(document.Paths.Paths).To(HaveKey("/apis/apps/v1/namespaces/{namespace}/deployments/{name}"))
}

func openAPIv3OfDefinition(t *T) {
	kind, resource := t.ownKind("Thing")
	path := "apis/" + kind.GroupVersion().String()
	definition := definitionOf(kind, resource)
	shape := object(map[string]apiextensionsv1.JSONSchemaProps{
		"spec": object(map[string]apiextensionsv1.JSONSchemaProps{"old": {Type: "string", Description: "An old field."}}),
	})
	definition.Spec.Versions[0].Schema.OpenAPIV3Schema = &shape
	t.install(definition)

	first := t.openAPIPath(path, "An old field.")
	c := t.client()
	t.noError(c.Get(t.ctx, client.ObjectKeyFromObject(definition), definition))
	before := definition.DeepCopy()
	properties := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
	properties["new"] = apiextensionsv1.JSONSchemaProps{Type: "string", Description: "A new field."}
	t.noError(c.Patch(t.ctx, definition, client.MergeFrom(before)))
	t.Eventually(func() string { return t.openAPIPath(path, "A new field.") }).ShouldNot(Equal(first), "the address names the content")
}

// openAPIPath waits until the document contains the words, and returns its address.
func (t *T) openAPIPath(path, words string) string {
	address := ""
	t.Eventually(func(g Gomega) {
		paths, err := t.discovery().OpenAPIV3().Paths()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(paths).To(HaveKey(path))
		document, err := paths[path].Schema("application/json")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(document)).To(ContainSubstring(words))
		address = paths[path].ServerRelativeURL()
	}).Should(Succeed())
	return address
}

func (t *T) dynamicMapper() meta.RESTMapper {
	made, err := apiutil.NewDynamicRESTMapper(t.newConfig(), t.httpClient())
	t.noError(err)
	return made
}

func mapperSeesLaterDefinition(t *T) {
	kind, resource := t.ownKind("Thing")
	mapper := t.dynamicMapper()
	_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	t.isTrue(meta.IsNoMatchError(err), "a kind that is not there is answered with %v", err)

	t.install(definitionOf(kind, resource))
	t.Eventually(func(g Gomega) {
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(mapping.Resource).To(Equal(resource))
		g.Expect(mapping.Scope.Name()).To(Equal(meta.RESTScopeNameNamespace))
	}).Should(Succeed())

	thing := t.widgetTree("one")
	thing.SetGroupVersionKind(kind)
	t.noError(t.client().Create(t.ctx, thing))
}

func mapperSeesLaterVersion(t *T) {
	kind, resource := t.ownKind("Thing")
	definition := definitionOf(kind, resource)
	t.install(definition)
	mapper := t.dynamicMapper()
	_, err := mapper.RESTMapping(kind.GroupKind(), "v1")
	t.noError(err)

	c := t.client()
	t.noError(c.Get(t.ctx, client.ObjectKeyFromObject(definition), definition))
	definition.Spec.Versions = append(definition.Spec.Versions, openVersion("v2", false))
	t.noError(c.Update(t.ctx, definition))
	t.Eventually(func() error {
		_, err := mapper.RESTMapping(kind.GroupKind(), "v2")
		return err
	}).Should(Succeed())
}

func deferredMapper(t *T) {
	kind, resource := t.ownKind("Thing")
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(t.discovery()))
	_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	t.isTrue(meta.IsNoMatchError(err), "a kind that is not there is answered with %v", err)
	t.install(definitionOf(kind, resource))
	t.Eventually(func(g Gomega) {
		mapper.Reset()
		found, err := mapper.KindFor(resource.GroupResource().WithVersion(""))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found).To(Equal(kind))
	}).Should(Succeed())
}

func shortNames(t *T) {
	cached := memory.NewMemCacheClient(t.discovery())
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil)
	for short, full := range map[string]string{"deploy": "deployments", "po": "pods", "crd": "customresourcedefinitions", "sa": "serviceaccounts"} {
		resource, err := mapper.ResourceFor(schema.GroupVersionResource{Resource: short})
		t.noError(err)
		t.Expect(resource.Resource).To(Equal(full))
	}
}
