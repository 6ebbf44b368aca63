package token

import (
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
)

func made(t *testing.T) Made {
	t.Helper()
	m, err := New()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestATokenIsItsOwnAndNoOther(t *testing.T) {
	a, b := made(t), made(t)
	if a.ID == b.ID || a.Secret == b.Secret {
		t.Fatalf("twice the same: %+v %+v", a, b)
	}
	if strings.Contains(a.Hash, a.Secret) || strings.Contains(a.Secret, a.Hash) {
		t.Error("the hash shows the secret")
	}
	id, err := ID(a.Secret)
	if err != nil || id != a.ID {
		t.Errorf("%q, %v; made %q", id, err, a.ID)
	}
	kept := Kept{Hash: a.Hash}
	if err := kept.Check(a.Secret, time.Now()); err != nil {
		t.Error(err)
	}
	if err := kept.Check(b.Secret, time.Now()); err == nil {
		t.Error("another token passed")
	}
}

// TestEveryDamageIsSeen changes, drops and doubles each byte.
func TestEveryDamageIsSeen(t *testing.T) {
	m := made(t)
	for i := range m.Secret {
		other := byte('x')
		if m.Secret[i] == other {
			other = 'y'
		}
		for what, bad := range map[string]string{
			"changed": m.Secret[:i] + string(other) + m.Secret[i+1:],
			"dropped": m.Secret[:i] + m.Secret[i+1:],
			"cut":     m.Secret[:i],
			"doubled": m.Secret[:i+1] + m.Secret[i:],
		} {
			_, err := ID(bad)
			if fault.KindOf(err) != fault.Permission || fault.Remedy(err) == "" {
				t.Errorf("byte %d %s: %v", i, what, err)
			}
			if strings.Contains(err.Error(), m.Secret[20:30]) {
				t.Errorf("the message shows the secret: %v", err)
			}
		}
	}
}

func TestWhenATokenIsValid(t *testing.T) {
	m := made(t)
	now := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name string
		kept Kept
		want string
	}{
		{"for ever", Kept{Hash: m.Hash}, ""},
		{"still", Kept{Hash: m.Hash, Expires: now.Add(1)}, ""},
		{"not at its end", Kept{Hash: m.Hash, Expires: now}, "expired"},
		{"not after", Kept{Hash: m.Hash, Expires: now.Add(-time.Hour)}, "expired"},
		{"revoked", Kept{Hash: m.Hash, Revoked: now}, "revoked"},
		{"revoked before it expired", Kept{Hash: m.Hash, Revoked: now, Expires: now.Add(-1)}, "revoked"},
		{"of a wrong secret nothing is said", Kept{Hash: Hash("other"), Revoked: now}, "not known"},
		{"no hash", Kept{}, "not known"},
	} {
		err := c.kept.Check(m.Secret, now)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || fault.Remedy(err) == ""):
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
