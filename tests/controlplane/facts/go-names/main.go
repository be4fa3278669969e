// go-names writes how Go calls the types of fields that are not simply strings or maps, for
// ctrlruntime/data/kubernetes-1.36/go-names.json.gz: messages of encoding/json about a value of another type have the name.
//
// For each type, by its protobuf name: {field in JSON: name of its type}, of a list the name of its items.
package main

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

var names = map[string]map[string]string{}
var seen = map[reflect.Type]bool{}

func main() {
	for _, t := range scheme.Scheme.AllKnownTypes() {
		walk(t)
	}
	walk(reflect.TypeOf(apiextensionsv1.CustomResourceDefinition{}))
	walk(reflect.TypeOf(apiregistrationv1.APIService{}))
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(names); err != nil {
		panic(err)
	}
}

func walk(t reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		walk(t.Elem())
		return
	case reflect.Struct:
	default:
		return
	}
	if seen[t] || !strings.HasPrefix(t.PkgPath(), "k8s.io/") {
		return
	}
	seen[t] = true
	found := map[string]string{}
	for _, field := range reflect.VisibleFields(t) {
		if !field.IsExported() {
			continue
		}
		walk(field.Type)
		key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name := named(field.Type); key != "" && key != "-" && name != "" {
			found[key] = name
		}
	}
	if len(found) > 0 {
		names[strings.ReplaceAll(strings.ReplaceAll(t.PkgPath(), "/", "."), "-", "_")+"."+t.Name()] = found
	}
}

func named(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Map && (t.Name() != "" || t.Key().PkgPath() != "") {
		return t.String()
	}
	if t.Kind() == reflect.Slice && t.Name() == "" {
		t = t.Elem()
	}
	if t.Kind() == reflect.String && t.PkgPath() != "" {
		return t.String()
	}
	return ""
}
