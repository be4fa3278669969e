// Compiles and evaluates expressions as kube-apiserver does: reads {"text": …, "variables": {…}} a line, where all variables are dyn,
// and writes what is wrong with the expression, the value, or why it has none.
//
// tests/cel/values.py compares our compiler and evaluator with it.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"sort"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
)

var names = []string{"a", "b", "self", "in1"}

func show(v ref.Val) string {
	switch x := v.(type) {
	case types.Null:
		return "null"
	case types.Bool:
		return fmt.Sprint(bool(x))
	case types.Int:
		return fmt.Sprint(int64(x))
	case types.Uint:
		return fmt.Sprint(uint64(x)) + "u"
	case types.Double:
		return fmt.Sprintf("d%x", math.Float64bits(float64(x)))
	case types.String:
		return fmt.Sprintf("s%x", string(x))
	case types.Bytes:
		return fmt.Sprintf("b%x", []byte(x))
	case types.Duration:
		return fmt.Sprint("duration ", x.Nanoseconds())
	case types.Timestamp:
		return fmt.Sprint("timestamp ", x.UnixNano())
	case *types.Optional:
		if !x.HasValue() {
			return "none"
		}
		return "optional " + show(x.GetValue())
	case ref.Type:
		return "type " + x.TypeName()
	case traits.Mapper:
		parts := []string{}
		for it := x.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			parts = append(parts, show(key)+":"+show(x.Get(key)))
		}
		sort.Strings(parts)
		return "{" + strings.Join(parts, ",") + "}"
	case traits.Lister:
		parts := []string{}
		for it := x.Iterator(); it.HasNext() == types.True; {
			parts = append(parts, show(it.Next()))
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	return v.Type().TypeName()
}

func answer(env *cel.Env, text string, variables map[string]any) (found []string) {
	defer func() {
		if r := recover(); r != nil {
			found = []string{"panic", fmt.Sprint(r)}
		}
	}()
	tree, issues := env.Compile(text)
	if issues != nil && issues.Err() != nil {
		return []string{"compile", issues.Err().Error()}
	}
	program, err := env.Program(tree)
	if err != nil {
		return []string{"program", err.Error()}
	}
	value, _, err := program.Eval(variables)
	if err != nil {
		return []string{"failed", err.Error()}
	}
	return []string{"value", show(value)}
}

func main() {
	options := []cel.EnvOption{}
	for _, name := range names {
		options = append(options, cel.Variable(name, cel.DynType))
	}
	set, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(
		environment.VersionedOptions{IntroducedVersion: version.MajorMinor(1, 0), EnvOptions: options})
	if err != nil {
		panic(err)
	}
	env := set.StoredExpressionsEnv()
	in := bufio.NewReaderSize(os.Stdin, 1<<24)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	enc := json.NewEncoder(out)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var given struct {
			Text      string
			Variables json.RawMessage
		}
		var variables map[string]any
		if json.Unmarshal(line, &given) != nil || utiljson.Unmarshal(given.Variables, &variables) != nil {
			panic(string(line))
		}
		enc.Encode(answer(env, given.Text, variables))
	}
}
