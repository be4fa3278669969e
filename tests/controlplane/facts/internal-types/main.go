// internal-types writes the fields of upstream's internal types, as encoding/json prints them, for
// ctrlruntime/data/kubernetes-1.36/internal-types.json.gz. Messages of kube-apiserver print such values.
//
// For each type: its fields in order, each [printed name, name in the served version, type, omitempty].
// An empty name is an embedded struct; a field that the served version lacks has its own name in camel case.
// Types: s string, i number, b bool, q Quantity, x IntOrString, ~ printed as it is served; *T pointer, []T list, {}T map.
package main

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/pkg/apis/apps"
	"k8s.io/kubernetes/pkg/apis/autoscaling"
	"k8s.io/kubernetes/pkg/apis/batch"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/flowcontrol"
	"k8s.io/kubernetes/pkg/apis/networking"
	"k8s.io/kubernetes/pkg/apis/policy"
	"k8s.io/kubernetes/pkg/apis/rbac"
	resourceapi "k8s.io/kubernetes/pkg/apis/resource"
	"k8s.io/kubernetes/pkg/apis/storage"
)

// Of each pair: the internal type and what is served of it.
var roots = [][2]any{
	{core.PodTemplateSpec{}, corev1.PodTemplateSpec{}},
	{core.EphemeralContainer{}, corev1.EphemeralContainer{}},
	{core.PersistentVolumeClaimSpec{}, corev1.PersistentVolumeClaimSpec{}},
	{core.PersistentVolumeSpec{}, corev1.PersistentVolumeSpec{}},
	{core.PersistentVolumeSource{}, corev1.PersistentVolumeSource{}},
	{core.ServiceSpec{}, corev1.ServiceSpec{}},
	{core.LoadBalancerStatus{}, corev1.LoadBalancerStatus{}},
	{core.NodeSpec{}, corev1.NodeSpec{}},
	{core.NodeAddress{}, corev1.NodeAddress{}},
	{core.Event{}, corev1.Event{}},
	{core.ResourceQuotaSpec{}, corev1.ResourceQuotaSpec{}},
	{apps.DeploymentSpec{}, appsv1.DeploymentSpec{}},
	{apps.StatefulSetSpec{}, appsv1.StatefulSetSpec{}},
	{apps.DaemonSetSpec{}, appsv1.DaemonSetSpec{}},
	{batch.JobSpec{}, batchv1.JobSpec{}},
	{batch.JobStatus{}, batchv1.JobStatus{}},
	{autoscaling.HorizontalPodAutoscalerSpec{}, autoscalingv2.HorizontalPodAutoscalerSpec{}},
	{networking.IngressSpec{}, networkingv1.IngressSpec{}},
	{networking.IngressStatus{}, networkingv1.IngressStatus{}},
	{networking.ParentReference{}, networkingv1.ParentReference{}},
	{policy.PodDisruptionBudgetSpec{}, policyv1.PodDisruptionBudgetSpec{}},
	{rbac.RoleRef{}, rbacv1.RoleRef{}},
	{flowcontrol.FlowSchemaSpec{}, flowcontrolv1.FlowSchemaSpec{}},
	{flowcontrol.PriorityLevelConfigurationSpec{}, flowcontrolv1.PriorityLevelConfigurationSpec{}},
	{storage.CSINodeDriver{}, storagev1.CSINodeDriver{}},
	{storage.VolumeAttachmentSpec{}, storagev1.VolumeAttachmentSpec{}},
	{resourceapi.ResourceClaimTemplateSpec{}, resourcev1.ResourceClaimTemplateSpec{}},
	{resourceapi.AllocationResult{}, resourcev1.AllocationResult{}},
	{resourceapi.DeviceAttribute{}, resourcev1.DeviceAttribute{}},
	{apiextensions.CustomResourceDefinitionVersion{}, apiextensionsv1.CustomResourceDefinitionVersion{}},
}

var types = map[string][][4]any{}

func main() {
	for _, pair := range roots {
		describe(reflect.TypeOf(pair[0]), reflect.TypeOf(pair[1]))
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(types); err != nil {
		panic(err)
	}
}

func name(internal reflect.Type) string {
	parts := strings.Split(internal.PkgPath(), "/")
	return parts[len(parts)-1] + "." + internal.Name()
}

func isInternal(t reflect.Type) bool {
	return strings.HasPrefix(t.PkgPath(), "k8s.io/kubernetes/pkg/apis/") || strings.HasSuffix(t.PkgPath(), "/apis/apiextensions")
}

// describe returns the type of a field, and notes the structs in it.
func describe(internal, served reflect.Type) string {
	if served != nil && internal.Kind() != reflect.Pointer && served.Kind() == reflect.Pointer {
		served = served.Elem()
	}
	if internal == reflect.TypeOf(resource.Quantity{}) {
		return "q"
	}
	if internal == reflect.TypeOf(intstr.IntOrString{}) {
		return "x"
	}
	switch internal.Kind() {
	case reflect.String:
		return "s"
	case reflect.Bool:
		return "b"
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Float64:
		return "i"
	case reflect.Interface:
		return "*~"
	case reflect.Pointer, reflect.Slice, reflect.Map:
		if internal.Kind() == reflect.Slice && internal.Elem().Kind() == reflect.Uint8 {
			return "*~"
		}
		var inner reflect.Type
		if served != nil {
			inner = served
			if served.Kind() == reflect.Pointer && internal.Kind() != reflect.Pointer {
				inner = served.Elem()
			}
			if inner.Kind() == internal.Kind() {
				inner = inner.Elem()
			}
		}
		sign := map[reflect.Kind]string{reflect.Pointer: "*", reflect.Slice: "[]", reflect.Map: "{}"}[internal.Kind()]
		return sign + describe(internal.Elem(), inner)
	case reflect.Struct:
		if !isInternal(internal) {
			if internal.Name() == "Time" || internal.Name() == "MicroTime" || internal.Name() == "RawExtension" {
				return "*~"
			}
			return "~"
		}
		key := name(internal)
		if _, found := types[key]; !found {
			types[key] = nil
			types[key] = fields(internal, served)
		}
		return key
	}
	panic(internal.String())
}

func fields(internal, served reflect.Type) [][4]any {
	found := [][4]any{}
	for _, field := range reflect.VisibleFields(internal) {
		if len(field.Index) > 1 || !field.IsExported() {
			continue
		}
		printed, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if printed == "-" {
			continue
		}
		isEmbedded := field.Anonymous && printed == ""
		if printed == "" && !isEmbedded {
			printed = field.Name
		}
		external := camel(field.Name)
		var inner reflect.Type
		if served != nil && served.Kind() == reflect.Struct {
			if other, ok := served.FieldByName(field.Name); ok {
				external, _, _ = strings.Cut(other.Tag.Get("json"), ",")
				inner = other.Type
			} else if other, ok := served.FieldByNameFunc(func(one string) bool { return strings.EqualFold(one, field.Name) }); ok {
				external, _, _ = strings.Cut(other.Tag.Get("json"), ",")
				inner = other.Type
			} else if isEmbedded {
				external, inner = "", served
			}
		}
		if external == "" && !isEmbedded {
			external = field.Name
		}
		found = append(found, [4]any{printed, external, describe(field.Type, inner), strings.Contains(options, "omitempty")})
	}
	return found
}

// camel makes the first word small: HostPID is hostPID, FSGroup is fsGroup.
func camel(text string) string {
	end := 1
	for end < len(text) && text[end] >= 'A' && text[end] <= 'Z' {
		end++
	}
	if end > 1 && end < len(text) {
		end--
	}
	return strings.ToLower(text[:end]) + text[end:]
}
