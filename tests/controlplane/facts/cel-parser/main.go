// Parses expressions with cel-go: reads one JSON string a line, and writes for each what its tree is, or what is wrong.
//
// tests/cel/parsers.py compares our parser with it.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

func lit(v ref.Val) string {
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
		return "d" + strconv.FormatUint(math.Float64bits(float64(x)), 10)
	case types.String:
		return "s" + fmt.Sprintf("%x", string(x))
	case types.Bytes:
		return "b" + fmt.Sprintf("%x", []byte(x))
	}
	return "?"
}

func show(e ast.Expr, info *ast.SourceInfo) string {
	r, _ := info.GetOffsetRange(e.ID())
	at := fmt.Sprint(r.Start)
	parts := []string{}
	add := func(x ast.Expr) { parts = append(parts, show(x, info)) }
	switch e.Kind() {
	case ast.LiteralKind:
		return at + lit(e.AsLiteral())
	case ast.IdentKind:
		return at + "i" + e.AsIdent()
	case ast.SelectKind:
		s := e.AsSelect()
		t := "."
		if s.IsTestOnly() {
			t = "has"
		}
		return at + t + s.FieldName() + "(" + show(s.Operand(), info) + ")"
	case ast.CallKind:
		c := e.AsCall()
		t := at + "c" + c.FunctionName()
		if c.IsMemberFunction() {
			t += "@" + show(c.Target(), info)
		}
		for _, a := range c.Args() {
			add(a)
		}
		return t + "(" + strings.Join(parts, ",") + ")"
	case ast.ListKind:
		for _, a := range e.AsList().Elements() {
			add(a)
		}
		return at + "l" + fmt.Sprint(e.AsList().OptionalIndices()) + "(" + strings.Join(parts, ",") + ")"
	case ast.MapKind:
		for _, en := range e.AsMap().Entries() {
			m := en.AsMapEntry()
			er, _ := info.GetOffsetRange(en.ID())
			parts = append(parts, fmt.Sprint(er.Start, m.IsOptional(), show(m.Key(), info), show(m.Value(), info)))
		}
		return at + "m(" + strings.Join(parts, ",") + ")"
	case ast.StructKind:
		for _, en := range e.AsStruct().Fields() {
			f := en.AsStructField()
			er, _ := info.GetOffsetRange(en.ID())
			parts = append(parts, fmt.Sprint(er.Start, f.IsOptional(), f.Name(), show(f.Value(), info)))
		}
		return at + "o" + e.AsStruct().TypeName() + "(" + strings.Join(parts, ",") + ")"
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		for _, a := range []ast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()} {
			add(a)
		}
		return at + "f" + c.IterVar() + "/" + c.IterVar2() + "/" + c.AccuVar() + "(" + strings.Join(parts, ",") + ")"
	}
	return at + "?"
}

func main() {
	env, err := cel.NewEnv(cel.OptionalTypes(), cel.DefaultUTCTimeZone(true), cel.CrossTypeNumericComparisons(true))
	if err != nil {
		panic(err)
	}
	in := bufio.NewReaderSize(os.Stdin, 1<<24)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	enc := json.NewEncoder(out)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var text string
		if json.Unmarshal(line, &text) != nil {
			panic(string(line))
		}
		tree, iss := env.Parse(text)
		if iss != nil && iss.Err() != nil {
			enc.Encode([]string{"error", iss.Err().Error()})
		} else {
			enc.Encode([]string{"ok", show(tree.NativeRep().Expr(), tree.NativeRep().SourceInfo())})
		}
	}
}
