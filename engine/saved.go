package engine

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"
)

// Saved is what a job says that it has saved and can go on from. The zero value: nothing.
type Saved struct {
	At time.Time `json:"at,omitzero"`
	// As is where: a name in the job's checkpoint directory, or an absolute one; empty: the
	// directory as a whole.
	As string `json:"as,omitempty"`
}

// CheckSaved reports why a text does not name what was saved.
func CheckSaved(as string) error {
	switch {
	case as == "":
		return nil
	case len(as) > 4096 || strings.ContainsAny(as, "\x00\n") || !utf8.ValidString(as):
		return fmt.Errorf("%.80q is not one name", as)
	case !filepath.IsAbs(as) && !filepath.IsLocal(as):
		return fmt.Errorf("%.80q leads out of the checkpoint directory; write an absolute name", as)
	}
	return nil
}
