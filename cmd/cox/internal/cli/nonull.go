package cli

import "reflect"

// withoutNil is a copy of a value in which lists that would be null in JSON are empty lists. What
// it does not change it shares.
func withoutNil(v any) any {
	if v == nil {
		return nil
	}
	return fillNil(reflect.ValueOf(v)).Interface()
}

func fillNil(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || v.Elem().Kind() != reflect.Struct {
			return v
		}
		out := reflect.New(v.Type().Elem())
		out.Elem().Set(fillNil(v.Elem()))
		return out
	case reflect.Slice:
		if v.IsNil() && v.Type().Elem().Kind() != reflect.Uint8 {
			return reflect.MakeSlice(v.Type(), 0, 0)
		}
		if v.IsNil() || !holdsLists(v.Type().Elem()) {
			return v
		}
		out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			out.Index(i).Set(fillNil(v.Index(i)))
		}
		return out
	case reflect.Struct:
		out := reflect.New(v.Type()).Elem()
		out.Set(v)
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && holdsLists(f.Type) {
				out.Field(i).Set(fillNil(v.Field(i)))
			}
		}
		return out
	}
	return v
}

// holdsLists reports whether values of a type can hold lists that fillNil fills.
func holdsLists(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Slice, reflect.Struct:
		return true
	case reflect.Pointer:
		return t.Elem().Kind() == reflect.Struct
	}
	return false
}
