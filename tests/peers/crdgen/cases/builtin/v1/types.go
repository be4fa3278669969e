package v1

import (
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ContainersCase holds containers.
type ContainersCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +listType=map
	// +listMapKey=name
	Containers []corev1.Container `json:"containers,omitempty"`
}

// PodTemplateCase holds a Pod to be.
type PodTemplateCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Template corev1.PodTemplateSpec `json:"template"`
}

// SelectorCase selects.
type SelectorCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Selector metav1.LabelSelector  `json:"selector"`
	Others   *metav1.LabelSelector `json:"others,omitempty"`
}

// ConditionsCase has conditions.
type ConditionsCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ResourcesCase asks for amounts.
type ResourcesCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Resources corev1.ResourceRequirements `json:"resources,omitempty"`
}

// ReferencesCase names other objects.
type ReferencesCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Local  corev1.LocalObjectReference      `json:"local"`
	Object corev1.ObjectReference           `json:"object"`
	Key    corev1.SecretKeySelector         `json:"key"`
	Typed  corev1.TypedLocalObjectReference `json:"typed"`
	Env    []corev1.EnvFromSource           `json:"env"`
	Owner  metav1.OwnerReference            `json:"owner"`
}

// VolumesCase holds claims and volumes.
type VolumesCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Claims  []corev1.PersistentVolumeClaim `json:"claims,omitempty"`
	Volumes []corev1.Volume                `json:"volumes,omitempty"`
}

// MetaCase has metadata inside.
type MetaCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Template metav1.ObjectMeta `json:"template"`
}

// WorkloadsCase holds specs of other kinds.
type WorkloadsCase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Service    corev1.ServiceSpec                        `json:"service"`
	Strategy   appsv1.DeploymentStrategy                 `json:"strategy"`
	Ingress    networkingv1.IngressSpec                  `json:"ingress"`
	Policy     networkingv1.NetworkPolicySpec            `json:"policy"`
	Autoscaler autoscalingv2.HorizontalPodAutoscalerSpec `json:"autoscaler"`
	Rules      []rbacv1.PolicyRule                       `json:"rules"`
	Job        batchv1.PodFailurePolicy                  `json:"job"`
}
