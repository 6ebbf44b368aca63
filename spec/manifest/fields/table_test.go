package fields

import (
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// TestTableHasEveryFieldOfKubernetes compares the table with the public types of Kubernetes: each
// field is in the table with its type, and the table has no other.
func TestTableHasEveryFieldOfKubernetes(t *testing.T) {
	c := comparison{t: t, seen: map[reflect.Type]bool{}}
	for name, of := range map[string]any{
		"Pod": corev1.Pod{}, "Job": batchv1.Job{}, "CronJob": batchv1.CronJob{}, "Deployment": appsv1.Deployment{}, "StatefulSet": appsv1.StatefulSet{},
		"Service": corev1.Service{}, "HorizontalPodAutoscaler": autoscalingv2.HorizontalPodAutoscaler{}, "ConfigMap": corev1.ConfigMap{},
		"Secret": corev1.Secret{}, "Namespace": corev1.Namespace{}, "PersistentVolumeClaim": corev1.PersistentVolumeClaim{},
		"ResourceClaim": resourcev1.ResourceClaim{}, "ResourceClaimTemplate": resourcev1.ResourceClaimTemplate{}, "PodGroup": schedulingv1beta1.PodGroup{},
	} {
		c.compareTypes(name, types()[name], reflect.TypeOf(of))
	}
	if len(c.seen) < 150 {
		t.Errorf("only %d types were compared", len(c.seen))
	}
}

type comparison struct {
	t    *testing.T
	seen map[reflect.Type]bool
}

// formsOf are the forms that a type of Go may have in the table.
func formsOf(of reflect.Type) []Form {
	switch of {
	case reflect.TypeFor[resource.Quantity]():
		return []Form{Quantity}
	case reflect.TypeFor[intstr.IntOrString]():
		return []Form{IntOrString}
	case reflect.TypeFor[metav1.Time]():
		return []Form{Time}
	case reflect.TypeFor[[]byte]():
		return []Form{Bytes}
	}
	switch of.Kind() {
	case reflect.String:
		return []Form{Text, Word}
	case reflect.Bool:
		return []Form{Bool}
	case reflect.Int32, reflect.Int64:
		return []Form{Integer, FileMode}
	case reflect.Slice:
		return []Form{List}
	case reflect.Map:
		return []Form{Map}
	}
	return []Form{Object}
}

func (c *comparison) compareTypes(path string, have *Type, of reflect.Type) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if have.Form == Raw {
		return
	}
	fits := false
	for _, f := range formsOf(of) {
		fits = fits || f == have.Form
	}
	switch {
	case !fits:
		c.t.Errorf("%s is %s in the table, and %s in Kubernetes", path, have.Name, of)
	case have.Form == List:
		c.compareTypes(path+"[]", have.Elem, of.Elem())
	case have.Form == Map:
		c.compareTypes(path+".*", have.Elem, of.Elem())
	case have.Form == Object && !c.seen[of]:
		c.seen[of] = true
		c.compareFields(path, have, of)
	}
}

func (c *comparison) compareFields(path string, have *Type, of reflect.Type) {
	theirs := map[string]reflect.Type{}
	jsonFields(of, theirs)
	for name, field := range theirs {
		if f := have.Find(name); f == nil {
			c.t.Errorf("%s.%s (%s) is missing in the table (type %s)", path, name, field, have.Name)
		} else {
			c.compareTypes(path+"."+name, f.Type, field)
		}
	}
	for _, name := range have.Names() {
		if _, ok := theirs[name]; !ok {
			c.t.Errorf("%s.%s is in the table, and Kubernetes does not have it", path, name)
		}
	}
}

// jsonFields collects the fields of a type by their names in JSON, those of embedded types too.
func jsonFields(of reflect.Type, into map[string]reflect.Type) {
	for i := range of.NumField() {
		f := of.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "" && f.Anonymous:
			jsonFields(f.Type, into)
		case name != "" && name != "-":
			into[name] = f.Type
		}
	}
}

// TestTableIsWhole reads the table, which panics at a fault, and finds groups that nothing uses
// and kinds whose fields have no rule.
func TestTableIsWhole(t *testing.T) {
	used := map[string]bool{}
	var use func(ty *Type, path string, ruled bool)
	use = func(ty *Type, path string, ruled bool) {
		for ty.Elem != nil {
			ty = ty.Elem
		}
		if ty.Form != Object {
			if !ruled {
				t.Errorf("%s has no rule", path)
			}
			return
		}
		if used[ty.Name] && ruled {
			return
		}
		used[ty.Name] = true
		for _, f := range ty.Fields {
			use(f.Type, path+"."+f.Name, ruled || f.Rule != nil)
		}
	}
	for _, k := range Kinds {
		if k.Type() == nil {
			t.Fatalf("%s of %s has no type", k.Name, k.APIVersion())
		}
		use(k.Type(), k.Name, false)
	}
	for _, f := range types()["labels"].Fields {
		if f.Rule == nil {
			t.Errorf("label %s has no rule", f.Name)
		}
	}
	for name := range types() {
		if !used[name] && name != "labels" {
			t.Errorf("no kind has a field of type %s", name)
		}
	}
}
