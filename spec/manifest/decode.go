package manifest

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/coxswain-sched/coxswain/spec/manifest/object"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

// objects make the object of a kind, by the name of its type in the table.
var objects = map[string]func() any{
	"Pod":                     func() any { return new(object.Pod) },
	"Job":                     func() any { return new(object.Job) },
	"CronJob":                 func() any { return new(object.CronJob) },
	"JobSet":                  func() any { return new(object.JobSet) },
	"LeaderWorkerSet":         func() any { return new(object.LeaderWorkerSet) },
	"PyTorchJob":              func() any { return new(object.PyTorchJob) },
	"MPIJob":                  func() any { return new(object.MPIJob) },
	"MPIJobV1":                func() any { return new(object.MPIJob) },
	"VolcanoJob":              func() any { return new(object.VolcanoJob) },
	"RayJob":                  func() any { return new(object.RayJob) },
	"RayCluster":              func() any { return new(object.RayCluster) },
	"Deployment":              func() any { return new(object.Deployment) },
	"StatefulSet":             func() any { return new(object.StatefulSet) },
	"Service":                 func() any { return new(object.Service) },
	"HorizontalPodAutoscaler": func() any { return new(object.HorizontalPodAutoscaler) },
	"ConfigMap":               func() any { return new(object.ConfigMap) },
	"Secret":                  func() any { return new(object.Secret) },
	"PersistentVolumeClaim":   func() any { return new(object.PersistentVolumeClaim) },
	"Namespace":               func() any { return new(object.Namespace) },
	"PodGroup":                func() any { return new(object.PodGroup) },
	"ResourceClaim":           func() any { return new(object.ResourceClaim) },
	"ResourceClaimTemplate":   func() any { return new(object.ResourceClaimTemplate) },
}

// decodeObject fills the object of a document whose form has been checked.
func (d *Document) decodeObject() {
	d.Object = objects[d.Kind.Type().Name]()
	decodeValue(reflect.ValueOf(d.Object).Elem(), d.root, "")
}

var (
	atType          = reflect.TypeFor[object.At]()
	quantityType    = reflect.TypeFor[object.Quantity]()
	intOrStringType = reflect.TypeFor[object.IntOrString]()
	bytesType       = reflect.TypeFor[[]byte]()
)

// layout says which field of a struct a name fills.
type layout struct {
	at     []int // of object.At; nil: it has none
	fields map[string][]int
}

var layouts sync.Map // reflect.Type → *layout

func layoutOf(t reflect.Type) *layout {
	if l, ok := layouts.Load(t); ok {
		return l.(*layout)
	}
	l := &layout{fields: map[string][]int{}}
	for _, f := range reflect.VisibleFields(t) {
		if f.Type == atType && f.Anonymous && l.at == nil {
			l.at = f.Index
		}
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			l.fields[name] = f.Index
		}
	}
	layouts.Store(t, l)
	return l
}

// decodeValue fills a value from a node of its form. What is null stays empty.
func decodeValue(to reflect.Value, n *yaml.Node, path string) {
	if n.Kind == yaml.Null {
		return
	}
	switch t := to.Type(); {
	case t == quantityType:
		to.SetString(n.Text)
	case t == intOrStringType:
		to.Set(reflect.ValueOf(decodeIntOrString(n)))
	case t == bytesType:
		to.SetBytes(decodeBytes(n.Text))
	case t.Kind() == reflect.Pointer:
		to.Set(reflect.New(t.Elem()))
		decodeValue(to.Elem(), n, path)
	case t.Kind() == reflect.Struct:
		decodeStruct(to, n, path)
	case t.Kind() == reflect.Slice:
		to.Set(reflect.MakeSlice(t, len(n.Items), len(n.Items)))
		for i, item := range n.Items {
			decodeValue(to.Index(i), item, path+"["+strconv.Itoa(i)+"]")
		}
	case t.Kind() == reflect.Map:
		to.Set(reflect.MakeMapWithSize(t, len(n.Fields)))
		for _, f := range n.Fields {
			v := reflect.New(t.Elem()).Elem()
			decodeValue(v, f.Value, Join(path, f.Name))
			to.SetMapIndex(reflect.ValueOf(f.Name), v)
		}
	default:
		decodeScalar(to, n)
	}
}

func decodeStruct(to reflect.Value, n *yaml.Node, path string) {
	l := layoutOf(to.Type())
	if l.at != nil {
		to.FieldByIndex(l.at).Set(reflect.ValueOf(object.At{Path: path, Node: n}))
	}
	for _, f := range n.Fields {
		if index, ok := l.fields[f.Name]; ok {
			decodeValue(to.FieldByIndex(index), f.Value, Join(path, f.Name))
		}
	}
}

// decodeScalar fills a text, a number or a truth. The form has been checked, so that a value
// which does not fit cannot be here.
func decodeScalar(to reflect.Value, n *yaml.Node) {
	_, json := resolveScalar(n)
	switch to.Kind() {
	case reflect.String:
		to.SetString(n.Text)
	case reflect.Bool:
		to.SetBool(json == "true")
	case reflect.Int32, reflect.Int64:
		if i, err := strconv.ParseInt(json, 10, 64); err == nil {
			to.SetInt(i)
		}
	default:
		panic(fmt.Sprintf("spec/manifest: no value of type %s is read", to.Type())) // an object of our own: a test finds it
	}
}

func decodeIntOrString(n *yaml.Node) object.IntOrString {
	if kind, json := resolveScalar(n); kind == anInteger {
		if i, err := strconv.ParseInt(json, 10, 64); err == nil {
			return object.IntOrString{Int: i, Number: true}
		}
	}
	return object.IntOrString{Text: n.Text}
}

func decodeBytes(text string) []byte {
	b, err := base64.StdEncoding.DecodeString(strings.NewReplacer("\n", "", "\r", "").Replace(text))
	if err != nil {
		return nil // it has been checked
	}
	return b
}
