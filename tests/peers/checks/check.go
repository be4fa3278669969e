// Package checks holds what real Go clients rely on in an API server, one check a fact.
//
// A check is a function that takes a *T. It has a namespace of its own and a time limit, and it ends at its first
// failed expectation. All lists the checks; Run runs some of them.
package checks

import (
	"context"
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Check is one fact about a server.
type Check struct {
	// Name says which client and what it does with it: "apply/conflict".
	Name string
	// Run fails through the T it is given.
	Run func(*T)
	// Limit is the time it may take; 30 seconds when it is zero.
	Limit time.Duration
	// NeedsControllers is true where garbage collection or the end of a namespace is awaited. envtest has neither.
	NeedsControllers bool
	// NeedsEnvtest is true where envtest itself is asked for something.
	NeedsEnvtest bool
	// Alone is true where the other checks would be in the way; it then runs after them.
	Alone bool
}

// Result is what became of a check.
type Result struct {
	Name string
	// Failure is empty when the check succeeded, else one line.
	Failure string
	Took    time.Duration
}

// Options choose what runs, and how.
type Options struct {
	// Only selects the checks whose name it matches; nil selects all.
	Only *regexp.Regexp
	// Controllers is true where the server has its controllers beside it.
	Controllers bool
	// Envtest is what started the server; nil when something else did.
	Envtest *envtest.Environment
	// Parallel is how many checks run at once.
	Parallel int
}

// Select returns the checks that the options ask for, in the order of All.
func Select(options Options) []Check {
	var selected []Check
	for _, check := range All() {
		wanted := options.Only == nil || options.Only.MatchString(check.Name)
		possible := (options.Controllers || !check.NeedsControllers) && (options.Envtest != nil || !check.NeedsEnvtest)
		if wanted && possible {
			selected = append(selected, check)
		}
	}
	return selected
}

// Run runs the checks against the server of config and hands each result to report, in the order of the checks.
func Run(ctx context.Context, config *rest.Config, options Options, report func(Result)) {
	selected := Select(options)
	shared := &sharedState{envtest: options.Envtest}
	defer shared.cleanUp(config)
	results := make([]chan Result, len(selected))
	for i := range results {
		results[i] = make(chan Result, 1)
	}
	go runAll(selected, options.Parallel, func(i int) {
		results[i] <- runOne(ctx, selected[i], config, shared)
	})
	for _, result := range results {
		report(<-result)
	}
}

// runAll runs the checks, so many at once; those that want to be alone come last, one after another.
func runAll(selected []Check, parallel int, run func(int)) {
	var together sync.WaitGroup
	slots := make(chan struct{}, max(parallel, 1))
	for i, check := range selected {
		if check.Alone {
			continue
		}
		slots <- struct{}{}
		together.Go(func() {
			defer func() { <-slots }()
			run(i)
		})
	}
	together.Wait()
	for i, check := range selected {
		if check.Alone {
			run(i)
		}
	}
}

// grace is how long a check may go on after its context has ended, until it is given up.
const grace = 10 * time.Second

func runOne(ctx context.Context, check Check, config *rest.Config, shared *sharedState) Result {
	limit := check.Limit
	if limit == 0 {
		limit = 4 * time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	began := time.Now()
	t := newT(ctx, check.Name, config, shared)
	ended := make(chan struct{})
	go func() { // its own goroutine, because a failed expectation ends it by Goexit
		defer close(ended)
		defer t.cleanUp()
		defer t.recoverPanic()
		t.createNamespace()
		check.Run(t)
	}()
	select {
	case <-ended:
	case <-time.After(limit + grace):
		t.fail(fmt.Sprintf("still runs %s after its limit of %s", grace, limit))
	}
	return Result{Name: check.Name, Failure: t.failed(), Took: time.Since(began)}
}

// failure is the first thing that went wrong in a check.
type failure struct {
	mutex sync.Mutex
	text  string
}

// fail keeps the first message; later ones are its consequences.
func (f *failure) fail(message string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.text == "" {
		f.text = oneLine(message)
	}
}

func (f *failure) failed() string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.text
}

func (f *failure) recoverPanic() {
	if cause := recover(); cause != nil {
		f.fail(fmt.Sprintf("panic: %v at %s", cause, debug.Stack()))
	}
}

// longest is where a failure's line is cut: gomega prints whole objects.
const longest = 1500

func oneLine(message string) string {
	line := strings.Join(strings.Fields(message), " ")
	if len(line) > longest {
		line = line[:longest] + "…"
	}
	return line
}

// caller returns the place in this package's checks where an expectation failed.
func caller() string {
	counters := make([]uintptr, 40)
	frames := runtime.CallersFrames(counters[:runtime.Callers(2, counters)])
	for {
		frame, more := frames.Next()
		file := frame.File[strings.LastIndex(frame.File, "/")+1:]
		if strings.Contains(frame.Function, "peers/checks.") && file != "check.go" && file != "t.go" {
			return fmt.Sprintf("%s:%d", file, frame.Line)
		}
		if !more {
			return "somewhere"
		}
	}
}
