// The controller-runtime peer of the benchmark.
//
//	peer WORKLOAD -kubeconfig FILE -objects N [-updates N] [-concurrency N] [-width N] [-port N -certs FOLDER]
//
// It says "ready", waits for a line, does the workload, prints one JSON line, gives back what memory it can at the next
// line and says "settled", and ends with its input. Time, CPU and memory are measured from outside.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/go-logr/logr"
	kuberuntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	controllerruntime "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

type options struct {
	objects     int
	updates     int
	concurrency int
	width       int
	port        int
	certs       string
}

var input = bufio.NewReader(os.Stdin)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) < 2 {
		return fmt.Errorf("which workload?")
	}
	var given options
	var kubeconfig string
	set := flag.NewFlagSet("peer", flag.ExitOnError)
	set.StringVar(&kubeconfig, "kubeconfig", "", "the server's `file`")
	set.IntVar(&given.objects, "objects", 0, "objects on the server")
	set.IntVar(&given.updates, "updates", 0, "updates to wait for")
	set.IntVar(&given.concurrency, "concurrency", 1, "reconciles at a time")
	set.IntVar(&given.width, "width", 0, "subscribers, controllers or namespaces")
	set.IntVar(&given.port, "port", 0, "where webhooks are served")
	set.StringVar(&given.certs, "certs", "", "the `folder` of their certificate")
	_ = set.Parse(os.Args[2:]) // it ends the program on an error
	workload, found := workloads[os.Args[1]]
	if !found {
		return fmt.Errorf("this peer has no workload %s", os.Args[1])
	}
	quieten()
	mgr, err := newManager(os.Args[1], kubeconfig, given)
	if err != nil {
		return err
	}
	figures, err := workload(context.Background(), mgr, given)
	if err != nil {
		return err
	}
	line, err := json.Marshal(figures)
	if err != nil {
		return err
	}
	fmt.Println(string(line))
	_, _ = input.ReadString('\n')
	debug.FreeOSMemory()
	fmt.Println("settled")
	_, _ = input.ReadString('\n')
	runtime.KeepAlive(mgr)
	return nil
}

// quieten keeps the libraries' logs from the output.
func quieten() {
	klog.SetLogger(logr.Discard())
	controllerruntime.SetLogger(logr.Discard())
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
}

func newManager(workload, kubeconfig string, given options) (manager.Manager, error) {
	config := &rest.Config{}
	if kubeconfig != "" {
		read, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			return nil, err
		}
		config = read
	} else {
		config.Host = "127.0.0.1:1" // the queue needs no server
	}
	config.QPS = -1
	scheme := kuberuntime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	addKinds(scheme)
	// The manager reads the mapping of kinds when it is first needed.
	made := manager.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"}}
	switch workload {
	case "namespaces":
		made.Cache.DefaultNamespaces = map[string]cache.Config{}
		for number := range given.width {
			made.Cache.DefaultNamespaces[fmt.Sprintf("bench-%04d", number)] = cache.Config{}
		}
	case "webhook":
		made.WebhookServer = webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: given.port, CertDir: given.certs})
	}
	return manager.New(config, made)
}
