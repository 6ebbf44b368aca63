package command_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/driver/slurm/command"
	"github.com/coxswain-sched/coxswain/driver/slurm/lockdir"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// TestRooms: a directory of this machine and one behind a shell answer alike.
//
// Seen to fail with: a Take that overwrites.
func TestRooms(t *testing.T) {
	rooms := map[string]func(dir string) (lockdir.Directory, error){
		"here": func(dir string) (lockdir.Directory, error) { return lockdir.Open(dir) },
		"shell": func(dir string) (lockdir.Directory, error) {
			return command.OpenRoom(t.Context(), &command.Here{}, dir)
		},
	}
	for name, open := range rooms {
		t.Run(name, func(t *testing.T) {
			ctx, dir := t.Context(), filepath.Join(t.TempDir(), "it's here")
			r, err := open(dir)
			if err != nil {
				t.Fatal(err)
			}
			if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o733 || info.Mode()&os.ModeSticky == 0 {
				t.Errorf("%v, %v", info.Mode(), err)
			}
			if mine, _, err := r.Take(ctx, "1.1-x.0", "mine's"); !mine || err != nil {
				t.Errorf("%t, %v", mine, err)
			}
			if mine, held, err := r.Take(ctx, "1.1-x.0", "another"); mine || held != "mine's" || err != nil {
				t.Errorf("%t, %q, %v", mine, held, err)
			}
			if info, err := os.Stat(filepath.Join(dir, "1.1-x.0")); err != nil || info.Mode().Perm() != 0o644 {
				t.Errorf("a lock that not everybody can read: %v, %v", info.Mode(), err)
			}
			if err := os.WriteFile(filepath.Join(dir, "1.1-x.0.done"), []byte("3\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			names, err := r.List(ctx)
			if slices.Sort(names); err != nil || !slices.Equal(names, []string{"1.1-x.0", "1.1-x.0.done"}) {
				t.Errorf("%q, %v", names, err)
			}
			marks, err := r.Look(ctx, []string{"1.1-x.0.done", "not there", "1.1-x.0"})
			if err != nil || len(marks) != 2 || marks[0].Text != "3" || marks[1].Text != "mine's" || marks[0].Owner != strconv.Itoa(os.Geteuid()) {
				t.Fatalf("%+v, %v", marks, err)
			}
			info, err := os.Stat(filepath.Join(dir, "1.1-x.0.done"))
			if d := marks[0].Time.Sub(info.ModTime()); err != nil || d.Abs().Milliseconds() > 0 {
				t.Errorf("a time is wrong by %s, %v", d, err)
			}
			if err := r.Drop(ctx, []string{"1.1-x.0.done", "not there"}); err != nil {
				t.Fatal(err)
			}
			if names, err := r.List(ctx); len(names) != 1 || err != nil {
				t.Errorf("%q, %v", names, err)
			}
			if err := r.Remove(ctx, "1.1-"); err != nil {
				t.Fatal(err)
			}
			if names, err := r.List(ctx); len(names) != 0 || err != nil {
				t.Errorf("%q, %v", names, err)
			}
			if _, _, err := r.Take(ctx, filepath.Join("x", "1.1-x.0"), ""); err != nil {
				t.Error(err)
			}
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			if _, _, err := r.Take(ctx, "1.1-x.0", ""); err == nil {
				t.Error("a lock in no directory")
			}
		})
	}
}

// full runs commands where no file has room for a byte.
type full struct{ command.Here }

func (f *full) Run(ctx context.Context, c command.Call) (command.Result, error) {
	c.Args = append([]string{"-c", `trap '' XFSZ; ulimit -f 0; exec "$@"`, "sh", c.Name}, c.Args...)
	c.Name = "sh"
	return f.Here.Run(ctx, c)
}

// TestALockOnAFullDisk is not there: one without a text would be a script's that has begun.
//
// Seen to fail with: the text written after the file is created.
func TestALockOnAFullDisk(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	r, err := command.OpenRoom(ctx, &full{}, dir)
	if err != nil {
		t.Fatal(err)
	}
	if mine, _, err := r.Take(ctx, "1.1-x.0", "fenced"); mine || fault.KindOf(err) != fault.Unavailable {
		t.Errorf("%t, %v", mine, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// TestLocksAppearWhole: who looks at the moment in which a lock is created sees its text.
//
// Seen to fail with: the text written after the file is created.
func TestLocksAppearWhole(t *testing.T) {
	r, err := lockdir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 60 {
		name, seen := fmt.Sprintf("%d.1-x.0", i), make(chan string, 1)
		go func() {
			for {
				if b, err := os.ReadFile(filepath.Join(r.Dir(), name)); err == nil {
					seen <- string(b)
					return
				}
			}
		}()
		if mine, _, err := r.Take(t.Context(), name, "fenced"); !mine || err != nil {
			t.Fatalf("%t, %v", mine, err)
		}
		if text := <-seen; text != "fenced\n" {
			t.Fatalf("%s was there with the text %q", name, text)
		}
	}
}

// TestMarksThatLead: a user can put in the place of his own attempt's files what leads to
// others, or what nobody has finished reading. It is there, and says nothing.
//
// Seen to fail with: os.ReadFile, and cat.
func TestMarksThatLead(t *testing.T) {
	rooms := map[string]func(dir string) (lockdir.Directory, error){
		"here": func(dir string) (lockdir.Directory, error) { return lockdir.Open(dir) },
		"shell": func(dir string) (lockdir.Directory, error) {
			return command.OpenRoom(t.Context(), &command.Here{}, dir)
		},
	}
	for name, open := range rooms {
		t.Run(name, func(t *testing.T) {
			ctx, dir := t.Context(), t.TempDir()
			r, err := open(dir)
			if err != nil {
				t.Fatal(err)
			}
			secret := filepath.Join(t.TempDir(), "secret")
			if err := os.WriteFile(secret, []byte("secret\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			for name, lay := range map[string]func(string) error{
				"link":     func(at string) error { return os.Symlink(secret, at) },
				"pipe":     func(at string) error { return unix.Mkfifo(at, 0o666) },
				"nowhere":  func(at string) error { return os.Symlink("/nowhere/at/all", at) },
				"dir":      func(at string) error { return os.Mkdir(at, 0o700) },
				"too long": func(at string) error { return os.WriteFile(at, bytes.Repeat([]byte("x"), 1<<20), 0o600) },
			} {
				if err := lay(filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
				mine, held, err := r.Take(ctx, name, "mine")
				if mine || err != nil || len(held) > 4096 || held != "" && name != "too long" {
					t.Errorf("%s: taken %t, it says %.80q, %v", name, mine, held, err)
				}
				marks, err := r.Look(ctx, []string{name})
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				for _, m := range marks {
					if len(m.Text) > 4096 || m.Text != "" && name != "too long" {
						t.Errorf("%s says %.80q", name, m.Text)
					}
				}
			}
		})
	}
}

// TestAnothersHardLink: a name of somebody else's file in the room is not read either.
//
// Seen to fail with: no look at the number of its names.
func TestAnothersHardLink(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can have somebody else's file")
	}
	dir := t.TempDir()
	r, err := lockdir.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(dir, "..", "secret")
	if err := errors.Join(os.WriteFile(secret, []byte("secret\n"), 0o600), os.Chown(secret, 61001, 61001), os.Link(secret, filepath.Join(dir, "1.1-x.0.done"))); err != nil {
		t.Fatal(err)
	}
	marks, err := r.Look(t.Context(), []string{"1.1-x.0.done"})
	if err != nil || len(marks) != 1 || marks[0].Text != "" {
		t.Errorf("%+v, %v", marks, err)
	}
}
