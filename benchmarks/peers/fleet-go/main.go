// The multicluster-runtime peer of the fleet benchmark.
//
//	peer FILE [ID KUBECONFIG]
//	peer FILE front
//
// FILE is a JSON list of addresses; the first is the hub. With an ID, peers divide the clusters with Leases in the
// cluster of the kubeconfig, which is the hub then. The program says "started", then answers each line of its
// input with one line of JSON, and ends with its input. Time, CPU and memory are measured from outside.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	kuberuntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	controllerruntime "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcbuilder "sigs.k8s.io/multicluster-runtime/pkg/builder"
	"sigs.k8s.io/multicluster-runtime/pkg/handler"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/manager/coordinator/sharded"
	"sigs.k8s.io/multicluster-runtime/pkg/manager/coordinator/sharded/peers"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
	"sigs.k8s.io/multicluster-runtime/providers/clusters"
)

type address struct {
	URL string `json:"url"`
	CA  string `json:"ca"`
}

func (a address) config() *rest.Config {
	return &rest.Config{Host: a.URL, TLSClientConfig: rest.TLSClientConfig{CAData: []byte(a.CA)}, QPS: -1}
}

// counted counts the clusters that all controllers have engaged.
type counted struct {
	*clusters.Provider
	engaged atomic.Int64
}

func (c *counted) Start(ctx context.Context, aware multicluster.Aware) error {
	return c.Provider.Start(ctx, counting{aware, &c.engaged})
}

type counting struct {
	multicluster.Aware
	engaged *atomic.Int64
}

func (c counting) Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	err := c.Aware.Engage(ctx, name, cl)
	if err == nil {
		c.engaged.Add(1)
	}
	return err
}

type reconciler struct {
	mu        sync.Mutex
	latencies []float64
	seen      map[string]float64
}

func (r *reconciler) Reconcile(_ context.Context, request mcreconcile.Request) (controllerruntime.Result, error) {
	if made, found := strings.CutPrefix(request.Name, "t-"); found {
		nanoseconds, err := strconv.ParseInt(made, 10, 64)
		if err != nil {
			return controllerruntime.Result{}, err
		}
		now := time.Now().UnixNano()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.latencies = append(r.latencies, float64(now-nanoseconds)/1e6)
		if name := string(request.ClusterName); r.seen[name] == 0 {
			r.seen[name] = float64(now) / 1e9
		}
	}
	return controllerruntime.Result{}, nil
}

func (r *reconciler) take() []float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := r.latencies
	r.latencies = []float64{}
	return found
}

// owned returns when each cluster was reconciled first since the last call.
func (r *reconciler) owned() map[string]float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := r.seen
	r.seen = map[string]float64{}
	return found
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

func run() error {
	content, err := os.ReadFile(os.Args[1])
	if err != nil {
		return err
	}
	var addresses []address
	if err := json.Unmarshal(content, &addresses); err != nil {
		return err
	}
	if len(os.Args) == 3 && os.Args[2] == "front" {
		return front(addresses)
	}
	klog.SetLogger(logr.Discard())
	controllerruntime.SetLogger(logr.Discard())
	scheme := kuberuntime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	provider := &counted{Provider: clusters.New()}
	options := mcmanager.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"}}
	hub := addresses[0].config()
	var divided []mcmanager.Option
	if len(os.Args) > 3 {
		if hub, err = clientcmd.BuildConfigFromFlags("", os.Args[3]); err != nil {
			return err
		}
		hub.QPS = -1
		made, err := client.New(hub, client.Options{Scheme: scheme})
		if err != nil {
			return err
		}
		// Its defaults, except the name: all peers have that of this machine.
		registry := peers.NewLeaseRegistry(made, "kube-system", "mcr-peer", os.Args[2], 1, logr.Discard())
		coordinator := sharded.New(made, logr.Discard(), sharded.WithPeerRegistry(registry))
		divided = append(divided, mcmanager.WithCoordinator(coordinator))
	}
	mgr, err := mcmanager.New(hub, provider, options, divided...)
	if err != nil {
		return err
	}
	done := &reconciler{latencies: []float64{}, seen: map[string]float64{}}
	none := func(context.Context, client.Object) []reconcile.Request { return nil }
	err = mcbuilder.ControllerManagedBy(mgr).
		For(&corev1.ConfigMap{}).
		Owns(&corev1.Secret{}).
		Watches(&corev1.Service{}, handler.EnqueueRequestsFromMapFunc(none)).
		Complete(done)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	<-mgr.Elected()
	go func() {
		for number, each := range addresses[1:] {
			made, err := cluster.New(each.config(), func(o *cluster.Options) { o.Scheme = scheme })
			if err == nil {
				err = provider.Add(ctx, multicluster.ClusterName(strconv.Itoa(number+1)), made)
			}
			if err != nil {
				fmt.Fprintln(os.Stderr, "peer:", err)
			}
		}
	}()
	go answer(provider, done, cancel)
	return <-ended
}

// answer answers each line of the input, and ends the manager with it.
func answer(provider *counted, done *reconciler, cancel func()) {
	defer cancel()
	say("started")
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		switch input.Text() {
		case "engaged":
			say(provider.engaged.Load())
		case "latencies":
			say(done.take())
		case "owned":
			say(done.owned())
		case "settle":
			debug.FreeOSMemory()
			say(nil)
		}
	}
}

func say(value any) {
	line, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
}
