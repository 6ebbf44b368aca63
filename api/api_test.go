package api

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/model/fault"
)

func TestTextOfColumnsComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.StringOf(rapid.RuneFrom([]rune{'a', '\t', '\n', '\r', '\\', 't', 'n', 'é', 0})).Draw(t, "value")
		line := string(AppendTSV(nil, v))
		if strings.ContainsAny(line, "\t\n\r") {
			t.Fatalf("%q has a separator in it", line)
		}
		if got := UnescapeTSV(line); got != v {
			t.Fatalf("%q became %q and then %q", v, line, got)
		}
	})
}

// TestErrorsCrossTheWire keeps kind, text and remedy of every kind.
func TestErrorsCrossTheWire(t *testing.T) {
	for k := fault.Internal; k <= fault.Exhausted; k++ {
		b, err := json.Marshal(ErrorOf(fault.New(k, "what").Advise("then")))
		if err != nil {
			t.Fatal(err)
		}
		var e Error
		if err := json.Unmarshal(b, &e); err != nil {
			t.Fatal(err)
		}
		got := e.Fault()
		var in *Error
		if fault.KindOf(got) != k || got.Error() != "what" || fault.Remedy(got) != "then" || !errors.As(got, &in) || in.Status != k.HTTPStatus() {
			t.Errorf("%s: %v, kind %s, remedy %q", k, got, fault.KindOf(got), fault.Remedy(got))
		}
	}
}

func TestKindsOfServersThatAreNewer(t *testing.T) {
	for status, want := range map[int]fault.Kind{
		401: fault.Permission, 403: fault.Permission, 404: fault.NotFound, 409: fault.Conflict, 418: fault.Invalid, 429: fault.Invalid,
		500: fault.Internal, 501: fault.Unsupported, 502: fault.Unavailable, 503: fault.Unavailable, 507: fault.Exhausted,
	} {
		if got := (&Error{Status: status, Title: "some new word"}).FaultKind(); got != want {
			t.Errorf("%d: %s", status, got)
		}
	}
}
