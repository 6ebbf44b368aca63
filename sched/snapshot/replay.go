package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/coxswain-sched/coxswain/sched"
)

// Encode writes decisions, each with its name, in one line. It is the form in which
// decisions are compared.
func Encode(decisions []sched.Decision) []byte {
	typed := make([]decision, len(decisions))
	for i, d := range decisions {
		typed[i] = decision{reflect.TypeOf(d).Name(), d}
	}
	b, err := json.Marshal(typed)
	if err != nil {
		panic(fmt.Sprintf("snapshot: a decision cannot be written as JSON: %v", err)) // plain data: cannot happen
	}
	return b
}

type decision struct {
	Kind string         `json:"kind"`
	Of   sched.Decision `json:"of"`
}

// Sum is the SHA-256 of encoded decisions, in hex.
func Sum(out []byte) string {
	h := sha256.Sum256(out)
	return hex.EncodeToString(h[:])
}

// Replay makes the steps of a file anew and calls each with the decisions of
// every one, and whether they are those that were made then (true where none are
// kept), until it returns false. It returns the core as it is then.
func (f *File) Replay(each func(i int, s *Step, out []byte, same bool) bool) *sched.Core {
	c := sched.Load(f.State)
	for i := range f.Steps {
		s := &f.Steps[i]
		out := Encode(c.Step(s.Now, s.Events...))
		same := (s.Out == nil || bytes.Equal(s.Out, out)) && (s.Sum == "" || s.Sum == Sum(out))
		if !each(i, s, out, same) {
			break
		}
	}
	return c
}
