package fault

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"syscall"
	"testing"
)

func TestEveryKindHasANameAStatusAndAnExitCode(t *testing.T) {
	names, exits := map[string]bool{}, map[int]bool{}
	for k := Internal; k <= Exhausted; k++ {
		if k.String() == "" || names[k.String()] {
			t.Errorf("kind %d: name %q", k, k)
		}
		if http.StatusText(k.HTTPStatus()) == "" || k.HTTPStatus() < 400 {
			t.Errorf("%s: %d is no HTTP error status", k, k.HTTPStatus())
		}
		if k.ExitCode() <= 1 || k.ExitCode() > 125 || exits[k.ExitCode()] {
			t.Errorf("%s: exit code %d", k, k.ExitCode())
		}
		names[k.String()], exits[k.ExitCode()] = true, true
	}
}

type own struct{ error }

func (own) FaultKind() Kind { return Conflict }

func TestKindOf(t *testing.T) {
	inner := New(NotFound, "no job %d", 7).Advise("look at %s", "cox queue")
	tests := []struct {
		err    error
		want   Kind
		remedy string
	}{
		{nil, Internal, ""},
		{errors.New("plain"), Internal, ""},
		{inner, NotFound, "look at cox queue"},
		{fmt.Errorf("while looking: %w", inner), NotFound, "look at cox queue"},
		{New(Unavailable, "outer: %w", inner), Unavailable, ""}, // the outermost decides
		{own{errors.New("x")}, Conflict, ""},
		{fmt.Errorf("write: %w", &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}), Exhausted, ""},
		{&fs.PathError{Op: "open", Path: "x", Err: syscall.EACCES}, Permission, ""},
		{errors.Join(errors.New("x"), inner), NotFound, "look at cox queue"},
	}
	for _, tt := range tests {
		if got := KindOf(tt.err); got != tt.want {
			t.Errorf("KindOf(%v) = %s, want %s", tt.err, got, tt.want)
		}
		if got := Remedy(tt.err); got != tt.remedy {
			t.Errorf("Remedy(%v) = %q, want %q", tt.err, got, tt.remedy)
		}
	}
	if !errors.Is(New(Invalid, "a: %w", inner), inner) {
		t.Error("New does not wrap")
	}
}
