package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/auth/token"
	"github.com/coxswain-sched/coxswain/auth/user"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/job"
)

// keepToken sees to it that the state directory holds a token of the server's own
// user, an administrator, which the server takes. It returns the file's name.
func keepToken(ctx context.Context, c *control.Control, dir string) (string, error) {
	name := filepath.Join(dir, "token")
	b, err := os.ReadFile(name)
	switch {
	case err == nil:
		if tokenTaken(c, strings.TrimSpace(string(b))) {
			return name, nil
		}
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	made, err := token.New()
	if err != nil {
		return "", err
	}
	self := (&user.Users{}).ByUID(uint32(os.Geteuid()))
	t := state.Token{
		ID: made.ID, Hash: made.Hash, Name: self.Name, UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()),
		Admin: true, Comment: "made by cox up", Created: time.Now(),
	}
	if err := c.PutToken(ctx, job.Actor{Name: self.Name, UID: t.UID, From: "cox up"}, t); err != nil {
		return "", fmt.Errorf("make a token: %w", err)
	}
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return name, os.WriteFile(name, []byte(made.Secret+"\n"), 0o600)
}

func tokenTaken(c *control.Control, secret string) bool {
	id, err := token.ID(secret)
	if err != nil {
		return false
	}
	t, ok := c.TokenByID(id)
	if !ok {
		return false
	}
	return token.Kept{Hash: t.Hash, Expires: t.Expires, Revoked: t.Revoked}.Check(secret, time.Now()) == nil
}
