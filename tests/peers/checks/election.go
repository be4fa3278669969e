package checks

import (
	"context"
	"sync"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

var electionChecks = []Check{
	{Name: "election/hand-over", Run: handOver},
	{Name: "election/expiry", Run: leaseExpires},
}

// candidate is one of those who want the lease "peers".
type candidate struct {
	name    string
	leads   chan struct{}
	stopped chan struct{}
	stop    context.CancelFunc
}

// runFor makes a candidate run. When it stops it gives the lease back, or lets it run out.
func (t *T) runFor(name string, release bool) *candidate {
	ctx, cancel := context.WithCancel(t.ctx)
	runs := &candidate{name: name, leads: make(chan struct{}), stopped: make(chan struct{}), stop: cancel}
	clientset := t.typed()
	var once sync.Once
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Name: "peers", Namespace: t.namespace},
			Client:     clientset.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		},
		LeaseDuration:   3 * time.Second,
		RenewDeadline:   2 * time.Second,
		RetryPeriod:     200 * time.Millisecond,
		ReleaseOnCancel: release,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { once.Do(func() { close(runs.leads) }) },
			OnStoppedLeading: func() {},
		},
	})
	t.noError(err)
	go func() {
		defer close(runs.stopped)
		elector.Run(ctx)
	}()
	t.atTheEnd(func(context.Context) {
		cancel()
		<-runs.stopped
	})
	return runs
}

func (t *T) lease() *coordinationv1.Lease {
	lease, err := t.typed().CoordinationV1().Leases(t.namespace).Get(t.ctx, "peers", metav1.GetOptions{})
	t.noError(err)
	return lease
}

func handOver(t *T) {
	first := t.runFor("first", true)
	t.Eventually(first.leads).Should(BeClosed())
	second := t.runFor("second", true)
	t.Eventually(func() string { return *t.lease().Spec.HolderIdentity }).Should(Equal("first"))
	before := t.lease().Spec.RenewTime
	t.Eventually(func() bool { return t.lease().Spec.RenewTime.After(before.Time) }).Should(BeTrue(), "the lease is renewed")
	t.Expect(second.leads).NotTo(BeClosed())

	first.stop()
	t.Eventually(second.leads).Should(BeClosed())
	t.Expect(t.lease().Spec.HolderIdentity).To(HaveValue(Equal("second")))
	t.Expect(t.lease().Spec.LeaseTransitions).To(HaveValue(Equal(int32(1))))
}

func leaseExpires(t *T) {
	first := t.runFor("first", false)
	t.Eventually(first.leads).Should(BeClosed())
	first.stop()
	<-first.stopped
	t.Expect(t.lease().Spec.HolderIdentity).To(HaveValue(Equal("first")), "the lease was not given back")
	second := t.runFor("second", false)
	t.Eventually(second.leads).Should(BeClosed())
	t.Expect(t.lease().Spec.HolderIdentity).To(HaveValue(Equal("second")))
}
