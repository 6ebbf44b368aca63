package native

import (
	"testing"

	"github.com/coxswain-sched/coxswain/spec"
)

// TestAtFieldsOfServices: an error that comes after the text was read is at the field that it is about, also at
// one in another field; where that is not given, at the one that has it.
//
// Seen to fail with: the fields of jobs alone.
func TestAtFieldsOfServices(t *testing.T) {
	text := "kind: service\nname: chat\nroute:\n  path: /v1\n  host: chat.example.org\nprobes: {readiness: {http: /}}\n"
	for _, tt := range []struct {
		fields    []string
		line, col int
	}{
		{[]string{"route.host"}, 5, 9},
		{[]string{"route.auth", "name"}, 3, 1},
		{[]string{"update", "name"}, 2, 7},
		{[]string{"probes.readiness.http"}, 6, 28},
		{[]string{"nothing"}, 0, 0},
	} {
		e := At(spec.Source{Name: "chat.yaml", Data: []byte(text)}, "no", "", tt.fields...)
		if e.Line != tt.line || e.Col != tt.col || e.File != "chat.yaml" {
			t.Errorf("%q: %d:%d", tt.fields, e.Line, e.Col)
		}
	}
}
