package policy

import (
	"fmt"
	"reflect"
	"strings"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// anyPolicy draws a policy by its types, which may say nonsense: names of nobody,
// trees with circles. A new field is drawn without a word here.
func anyPolicy() *rapid.Generator[*account.Policy] {
	return rapid.Custom(func(t *rapid.T) *account.Policy {
		p := &account.Policy{}
		draw(t, reflect.ValueOf(p).Elem(), field{}, "")
		return p
	})
}

var someNames = []string{"a", "nlp", "h100", "true", "no", "7", "1e5", "0x1f", "a b", "a: b", "- x", "träin", "\"", "#c", "x#y", "a.b", "12:30", "~", "{a}", "a,b", "null", "gpu:h100"}

// draw fills a value.
func draw(t *rapid.T, v reflect.Value, f field, of string) {
	switch ty := v.Type(); {
	case ty == amountType:
		v.SetInt(rapid.Int64Range(0, int64(resource.Unlimited)/2).Draw(t, f.name))
	case ty == durationType:
		v.SetInt(rapid.Int64Range(0, 65535*24*3600).Draw(t, f.name) * int64(rapid.SampledFrom([]int{1, 1e3, 1e9}).Draw(t, "unit")))
	case ty.Kind() == reflect.Pointer:
		if rapid.Bool().Draw(t, f.name) {
			v.Set(reflect.New(ty.Elem()))
			draw(t, v.Elem(), f, of)
		}
	case ty.Kind() == reflect.Struct:
		for _, f := range fieldsOf(ty) {
			if rapid.IntRange(0, 2).Draw(t, f.name) == 0 || strings.HasSuffix(f.name, "name") {
				draw(t, v.Field(f.index), f, of)
			}
		}
	case ty.Kind() == reflect.Slice:
		n := rapid.IntRange(0, 3).Draw(t, f.name)
		if n == 0 {
			return
		}
		v.Set(reflect.MakeSlice(ty, n, n))
		for i := range n {
			draw(t, v.Index(i), f, of)
		}
	case ty.Kind() == reflect.Map:
		n := rapid.IntRange(0, 3).Draw(t, f.name)
		if n == 0 {
			return
		}
		v.Set(reflect.MakeMap(ty))
		for range n {
			e := reflect.New(ty.Elem()).Elem()
			draw(t, e, f, of)
			v.SetMapIndex(reflect.ValueOf(rapid.SampledFrom([]string{"cpu", "memory", "gpu", "gpu:h100", "node", "billing", "license/m", "x/fpga"}).Draw(t, "key")), e)
		}
	case f.tag.Get("enum") != "":
		v.SetString(rapid.SampledFrom(strings.Split(f.tag.Get("enum"), ",")).Draw(t, f.name))
	case ty.Kind() == reflect.String:
		v.SetString(rapid.SampledFrom(someNames).Draw(t, f.name))
	case ty.Kind() == reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, f.name))
	case ty.Kind() == reflect.Float64:
		v.SetFloat(rapid.SampledFrom([]float64{0, 0.25, 1, 1e15, 1e-7, 3.3333333}).Draw(t, f.name))
	case ty.Kind() == reflect.Uint32:
		v.SetUint(uint64(rapid.Uint32().Draw(t, f.name)))
	case v.CanInt():
		if words := wordsOf(f.tag); len(words) > 0 && rapid.Bool().Draw(t, "word") {
			v.SetInt(rapid.SampledFrom(words).Draw(t, f.name).n)
			return
		}
		v.SetInt(int64(rapid.Int32Range(0, 1<<31-1).Draw(t, f.name)))
	default:
		panic(fmt.Sprintf("nobody draws a %s (%s)", ty, f.name))
	}
}
