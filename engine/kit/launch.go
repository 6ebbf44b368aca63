package kit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	"github.com/coxswain-sched/coxswain/engine"
)

// LaunchDigest tells one launch from another under the same Ref. What changes in a job while it
// waits (its state, its times) is not part of it.
func LaunchDigest(l *engine.Launch) string {
	h := sha256.New()
	enc := json.NewEncoder(h)
	for _, v := range []any{l.Ref, l.Job.ID, l.Job.Spec, l.Claims, l.Grace, len(l.Script), len(l.Env)} {
		if err := enc.Encode(v); err != nil {
			panic("launch: " + err.Error()) // plain data
		}
	}
	if l.Adds != nil {
		fmt.Fprintln(h, *l.Adds)
	}
	h.Write(l.Script)
	for _, v := range l.Env { // none holds a NUL
		_, _ = io.WriteString(h, v)
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil))
}
