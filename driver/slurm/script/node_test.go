package script_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/slurm/script"
)

// onNode is a guard whose locks are on this node, in an existing folder.
func onNode(t *testing.T) *script.Guard {
	t.Helper()
	g := guard(t)
	if err := os.Mkdir(g.Dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(g.Dir, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	g.Dir, g.OnNode = filepath.Join(g.Dir, "cox-w"), true
	return g
}

// own is the user's directory of locks.
func own(g *script.Guard) string { return g.Dir + "." + strconv.Itoa(os.Geteuid()) }

// ask runs what asks a node.
func ask(t *testing.T, g *script.Guard, mark string) script.Answer {
	t.Helper()
	out, code := begin(t, g.Ask(mark), 0)
	a, ok := script.Read(code)
	if !ok {
		t.Fatalf("exit %d: %s", code, out)
	}
	return a
}

// TestBeginsOnceOnANode: as TestBeginsOnce, but what Slurm has put back never begins.
func TestBeginsOnceOnANode(t *testing.T) {
	for name, text := range scripts {
		t.Run(name, func(t *testing.T) {
			g := onNode(t)
			wrapped := script.Wrap([]byte(text), g)
			if out, code := begin(t, wrapped, 1, "a b", "c"); strings.Contains(out, "ran") || code != script.ExitBarred {
				t.Errorf("requeued: exit %d: %s", code, out)
			}
			if out, code := begin(t, wrapped, 0, "a b", "c"); out != "ran a b 2\n" || code != 5 {
				t.Fatalf("exit %d: %s", code, out)
			}
			for restarts := range 2 {
				if out, code := begin(t, wrapped, restarts, "a b"); strings.Contains(out, "ran") || code != script.ExitBarred {
					t.Errorf("again: exit %d: %s", code, out)
				}
			}
			info, err := os.Stat(own(g))
			if err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("the directory of locks: %v, %v", info, err)
			}
		})
	}
}

// TestANodeIsAsked: what never began is fenced; what began says its last word, if it did.
func TestANodeIsAsked(t *testing.T) {
	g := onNode(t)
	mark := fmt.Sprintf("COX_ATTEMPT=%s:%s", g.Dir, g.Ref)
	for range 2 {
		if a := ask(t, g, mark); a != (script.Answer{}) {
			t.Errorf("before it began: %+v", a)
		}
	}
	if out, code := begin(t, script.Wrap([]byte("#!/bin/sh\necho ran\n"), g), 0); strings.Contains(out, "ran") || code != script.ExitBarred {
		t.Errorf("fenced: exit %d: %s", code, out)
	}
	for _, word := range []int{0, 1, 3, 109, 110, 126, 127, 128, 130, 134, 137, 139, 143, 254, 255} {
		g := onNode(t)
		if out, code := begin(t, script.Wrap(fmt.Appendf(nil, "#!/bin/sh\nexit %d\n", word), g), 0); code != word {
			t.Fatalf("exit %d, not %d: %s", code, word, out)
		}
		a := ask(t, g, mark)
		exact := word < 110 || strings.Contains(" 126 127 130 134 137 139 143 255 ", fmt.Sprintf(" %d ", word))
		if want := (script.Answer{Began: true, Done: true, Exit: word}); exact && a != want || !exact && (!a.Done || a.Exit != 1) {
			t.Errorf("last word %d: %+v", word, a)
		}
	}
	g = onNode(t)
	begin(t, script.Wrap([]byte("#!/bin/sh\nkill -9 $$\n"), g), 0)
	if a := ask(t, g, mark); a != (script.Answer{Began: true}) {
		t.Errorf("killed: %+v", a)
	}
	for _, status := range []int{0, 1, 2, 39, 43, 117, 118, 119, 126, 127, 129, 249, 255} {
		if a, ok := script.Read(status); ok {
			t.Errorf("exit status %d, which says nothing, is read as %+v", status, a)
		}
	}
}

// TestANodeOnWhichItLives: a process that has the mark is seen, whatever the lock says.
func TestANodeOnWhichItLives(t *testing.T) {
	g := onNode(t)
	mark := fmt.Sprintf("COX_ATTEMPT=%s:%s", g.Dir, g.Ref)
	c := exec.Command("sh", "-c", "echo up; read x")
	c.Env = append(os.Environ(), mark)
	in, _ := c.StdinPipe()
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if a := ask(t, g, mark); !a.Lives {
		t.Errorf("it lives: %+v", a)
	}
	_ = in.Close()
	_ = c.Wait()
	if a := ask(t, g, mark); a != (script.Answer{}) {
		t.Errorf("it has ended, and never took the lock: %+v", a)
	}
}

// TestADirectoryThatIsNotOurs: others can neither look into a directory of locks nor make it
// first, and one that others may rename, or that goes with the job, is none.
func TestADirectoryThatIsNotOurs(t *testing.T) {
	wrong := map[string]func(t *testing.T, g *script.Guard) error{
		"open to others": func(_ *testing.T, g *script.Guard) error {
			if err := os.Mkdir(own(g), 0o700); err != nil {
				return err
			}
			return os.Chmod(own(g), 0o750)
		},
		"a link": func(t *testing.T, g *script.Guard) error { return os.Symlink(t.TempDir(), own(g)) },
		"a file": func(_ *testing.T, g *script.Guard) error { return os.WriteFile(own(g), nil, 0o700) },
		"no room around it": func(_ *testing.T, g *script.Guard) error {
			g.Dir = filepath.Join(g.Dir, "none", "cox-w")
			return nil
		},
		"not sticky": func(_ *testing.T, g *script.Guard) error { return os.Chmod(filepath.Dir(g.Dir), 0o777) },
		"another user's": func(t *testing.T, g *script.Guard) error {
			if os.Geteuid() != 0 {
				t.Skip("only root gives files away")
			}
			if err := os.Mkdir(own(g), 0o700); err != nil {
				return err
			}
			return os.Chown(own(g), 65534, 65534)
		},
	}
	for name, spoil := range wrong {
		t.Run(name, func(t *testing.T) {
			g := onNode(t)
			if err := spoil(t, g); err != nil {
				t.Fatal(err)
			}
			if out, code := begin(t, script.Wrap([]byte("#!/bin/sh\necho ran\n"), g), 0); strings.Contains(out, "ran") || code != script.ExitLockless {
				t.Errorf("exit %d: %s", code, out)
			}
			if out, code := begin(t, g.Ask("COX_ATTEMPT=none"), 0); code != script.ExitLockless {
				t.Errorf("asked: exit %d: %s", code, out)
			}
		})
	}
	t.Run("the job's own", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("only root mounts")
		}
		g := onNode(t)
		g.Dir = filepath.Join(t.TempDir(), "cox-w")        // a blank is written otherwise among mounts
		private := filepath.Join(t.TempDir(), "41", ".41") // begin's number
		if err := os.MkdirAll(private, 0o700); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "slurm_script")
		if err := os.WriteFile(file, script.Wrap([]byte("#!/bin/sh\necho ran\n"), g), 0o700); err != nil {
			t.Fatal(err)
		}
		c := exec.Command("sh", "-c", `mount --make-rprivate / && mount --bind "$1" "$2" && exec "$3"`, "sh", private, filepath.Dir(g.Dir), file)
		c.Env = append(os.Environ(), "SLURM_JOB_ID=41")
		c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
		out, _ := c.CombinedOutput()
		if code := c.ProcessState.ExitCode(); strings.Contains(string(out), "ran") || code != script.ExitLockless {
			if strings.Contains(string(out), "mount:") {
				t.Skipf("%s", out)
			}
			t.Errorf("exit %d: %s", code, out)
		}
	})
}
