package checks

import (
	"context"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
)

var eventChecks = []Check{
	{Name: "event/recorder-of-core", Run: coreRecorder},
	{Name: "event/recorder-of-events", Run: eventsRecorder},
	{Name: "event/both-views-are-one", Run: eventViews},
	{Name: "event/field-selector", Run: eventFieldSelector},
}

func coreRecorder(t *T) {
	subject := t.configMap("one")
	t.noError(t.client().Create(t.ctx, subject))
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: t.typed().CoreV1().Events("")})
	t.atTheEnd(func(context.Context) { broadcaster.Shutdown() })
	recorder := broadcaster.NewRecorder(scheme, corev1.EventSource{Component: "peer"})

	for range 3 {
		recorder.Event(subject, corev1.EventTypeWarning, "Again", "the same")
	}
	t.Eventually(func(g Gomega) { // the second and third are counted by patches
		list, err := t.typed().CoreV1().Events(t.namespace).List(t.ctx, metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(list.Items).To(HaveLen(1))
		g.Expect(list.Items[0].Count).To(Equal(int32(3)))
		g.Expect(list.Items[0].InvolvedObject.UID).To(Equal(subject.UID))
		g.Expect(list.Items[0].Source.Component).To(Equal("peer"))
	}).Should(Succeed())
}

func eventsRecorder(t *T) {
	subject := t.configMap("one")
	t.noError(t.client().Create(t.ctx, subject))
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: t.typed().EventsV1()})
	t.noError(broadcaster.StartRecordingToSinkWithContext(t.ctx))
	t.atTheEnd(func(context.Context) { broadcaster.Shutdown() })
	recorder := broadcaster.NewRecorder(scheme, "peers.example.com/peer")

	t.Eventually(func(g Gomega) { // one that follows a recorded one makes a series of it
		recorder.Eventf(subject, nil, corev1.EventTypeNormal, "Made", "Making", "it was made")
		list, err := t.typed().EventsV1().Events(t.namespace).List(t.ctx, metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(list.Items).To(HaveLen(1))
		g.Expect(list.Items[0].Regarding.UID).To(Equal(subject.UID))
		g.Expect(list.Items[0].ReportingController).To(Equal("peers.example.com/peer"))
		g.Expect(list.Items[0].Series).To(HaveValue(HaveField("Count", BeNumerically(">=", 2))))
	}).Should(Succeed())
}

func eventViews(t *T) {
	made, err := t.typed().EventsV1().Events(t.namespace).Create(t.ctx, &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Name: "one"},
		EventTime:           metav1.NowMicro(),
		Action:              "Looking",
		Reason:              "Seen",
		Type:                corev1.EventTypeNormal,
		Note:                "it was seen",
		ReportingController: "peers.example.com/peer",
		ReportingInstance:   "peer-1",
		Regarding:           corev1.ObjectReference{Kind: "ConfigMap", Namespace: t.namespace, Name: "one"},
	}, metav1.CreateOptions{})
	t.noError(err)
	read, err := t.typed().CoreV1().Events(t.namespace).Get(t.ctx, "one", metav1.GetOptions{})
	t.noError(err)
	t.Expect(read.UID).To(Equal(made.UID))
	t.Expect(read.Message).To(Equal("it was seen"))
	t.Expect(read.InvolvedObject.Name).To(Equal("one"))
	t.Expect(read.ReportingController).To(Equal("peers.example.com/peer"))
	t.Expect(read.ReportingInstance).To(Equal("peer-1"))
	t.Expect(read.EventTime.Equal(&made.EventTime)).To(BeTrue())
}

func eventFieldSelector(t *T) {
	events := t.typed().CoreV1().Events(t.namespace)
	for _, name := range []string{"one", "two"} {
		_, err := events.Create(t.ctx, &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Name: "of-" + name},
			InvolvedObject: corev1.ObjectReference{Kind: "ConfigMap", Namespace: t.namespace, Name: name},
			Reason:         "Seen",
			Type:           corev1.EventTypeNormal,
		}, metav1.CreateOptions{})
		t.noError(err)
	}
	kind := "ConfigMap"
	selector := events.GetFieldSelector(new("two"), &t.namespace, &kind, nil)
	list, err := events.List(t.ctx, metav1.ListOptions{FieldSelector: selector.String() + ",reason=Seen"})
	t.noError(err)
	t.Expect(list.Items).To(ConsistOf(HaveField("Name", "of-two")))
}
