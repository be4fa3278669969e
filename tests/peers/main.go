// Peers runs the Go clients that people use, client-go and controller-runtime as released, against an API server and
// prints one line a check.
//
//	peers -kubeconfig FILE             a server that runs
//	peers -envtest DIR [-envtest DIR]  servers started by envtest from the binaries in each folder, one after another
//
// The exit code is 1 when a check failed, 2 when nothing could be run.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega/format"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	controllerruntime "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"ctrlruntime/tests/peers/checks"
)

type flags struct {
	kubeconfig string
	envtest    folders
	only       string
	json       bool
	trace      bool
	list       bool
	parallel   int
}

// folders is a flag that may be given several times.
type folders []string

func (f *folders) String() string { return strings.Join(*f, ",") }

func (f *folders) Set(value string) error {
	*f = append(*f, value)
	return nil
}

func main() {
	options := parse()
	quieten()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code, err := run(ctx, options)
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
	}
	os.Exit(code)
}

func parse() flags {
	var read flags
	// A set of our own: controller-runtime defines a -kubeconfig in the common one.
	set := flag.NewFlagSet("peers", flag.ExitOnError)
	set.StringVar(&read.kubeconfig, "kubeconfig", "", "run against the server of this `file`")
	set.Var(&read.envtest, "envtest", "run against a server started by envtest from the binaries in this `folder`; may be repeated")
	set.StringVar(&read.only, "only", "", "run the checks whose name matches this `pattern`, whole")
	set.BoolVar(&read.json, "json", false, "print one JSON object a line")
	set.BoolVar(&read.trace, "trace", false, "write each request and its answer to standard error")
	set.BoolVar(&read.list, "list", false, "print the names of the checks and end")
	set.IntVar(&read.parallel, "parallel", 8, "run `n` checks at once")
	_ = set.Parse(os.Args[1:]) // it ends the program on an error
	return read
}

// quieten keeps the libraries' logs from the output: the lines of the checks say what is wrong.
func quieten() {
	klog.SetLogger(logr.Discard())
	controllerruntime.SetLogger(logr.Discard())
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	format.MaxLength = 800
	format.MaxDepth = 4
}

func run(ctx context.Context, given flags) (int, error) {
	chosen := checks.Options{Parallel: given.parallel}
	if given.only != "" {
		pattern, err := regexp.Compile("^(?:" + given.only + ")$")
		if err != nil {
			return 2, fmt.Errorf("-only: %w", err)
		}
		chosen.Only = pattern
	}
	switch {
	case given.list:
		chosen.Controllers, chosen.Envtest = true, &envtest.Environment{}
		for _, check := range checks.Select(chosen) {
			fmt.Println(check.Name)
		}
		return 0, nil
	case given.kubeconfig != "" && len(given.envtest) == 0:
		return runExisting(ctx, given, chosen)
	case given.kubeconfig == "" && len(given.envtest) > 0:
		return runEnvtest(ctx, given, chosen)
	default:
		return 2, errors.New("say which server: -kubeconfig FILE, or -envtest DIR")
	}
}

func runExisting(ctx context.Context, given flags, chosen checks.Options) (int, error) {
	config, err := clientcmd.BuildConfigFromFlags("", given.kubeconfig)
	if err != nil {
		return 2, err
	}
	chosen.Controllers = true
	return runChecks(ctx, given, config, chosen).code(), nil
}

// runEnvtest runs the checks on a server from each folder. The last lines name the start-up times.
func runEnvtest(ctx context.Context, given flags, chosen checks.Options) (int, error) {
	all := tally{}
	var times []string
	for _, folder := range given.envtest {
		if !given.json {
			fmt.Printf("# envtest %s\n", folder)
		}
		took, counted, err := runInEnvtest(ctx, given, folder, chosen)
		if err != nil {
			return 2, fmt.Errorf("envtest with %s: %w", folder, err)
		}
		all.run += counted.run
		all.failed += counted.failed
		times = append(times, fmt.Sprintf("%.2f s %s", took.Seconds(), folder))
		if given.json {
			printJSON(map[string]any{"started": folder, "seconds": took.Seconds()})
		}
	}
	if !given.json {
		fmt.Println("started in", strings.Join(times, ", "))
	}
	return all.code(), nil
}

func runInEnvtest(
	ctx context.Context, given flags, folder string, chosen checks.Options,
) (took time.Duration, counted tally, err error) {
	server := &envtest.Environment{BinaryAssetsDirectory: folder, UseExistingCluster: new(false)}
	began := time.Now()
	config, err := server.Start()
	if err != nil {
		return 0, tally{}, errors.Join(err, server.Stop())
	}
	took = time.Since(began)
	chosen.Envtest = server
	counted = runChecks(ctx, given, config, chosen)
	return took, counted, server.Stop()
}

type tally struct{ run, failed int }

func (t tally) code() int {
	if t.failed > 0 || t.run == 0 {
		return 1
	}
	return 0
}

func runChecks(ctx context.Context, given flags, config *rest.Config, chosen checks.Options) tally {
	config.QPS = -1 // the client's own limit is for shared clusters
	config.UserAgent = "ctrlruntime-peers"
	if given.trace {
		config.Wrap(trace)
	}
	var counted tally
	checks.Run(ctx, config, chosen, func(result checks.Result) {
		counted.run++
		if result.Failure != "" {
			counted.failed++
		}
		printResult(result, given.json)
	})
	if !given.json {
		fmt.Printf("%d checks, %d failed\n", counted.run, counted.failed)
	}
	return counted
}

func printResult(result checks.Result, asJSON bool) {
	switch {
	case asJSON:
		printJSON(map[string]any{
			"name": result.Name, "ok": result.Failure == "", "why": result.Failure, "seconds": result.Took.Seconds(),
		})
	case result.Failure == "":
		fmt.Println("ok", result.Name)
	default:
		fmt.Printf("FAIL %s: %s\n", result.Name, result.Failure)
	}
}

func printJSON(value any) {
	line, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
}
