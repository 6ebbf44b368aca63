package command_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/slurm/command"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// overheard is a Runner that notes the words and the environment of its commands.
type overheard struct {
	command.Runner
	words []string
}

func (o *overheard) Run(ctx context.Context, c command.Call) (command.Result, error) {
	o.words = append(append(append(o.words, c.Args...), c.Env...), c.Job...)
	return o.Runner.Run(ctx, c)
}

// TestSecretDir: the files are their user's alone, whole, and no command says a value; what is there is left,
// and what is half there is made anew.
//
// Seen to fail with: umask 022; values as arguments.
func TestSecretDir(t *testing.T) {
	run := &overheard{Runner: &command.Here{}}
	place := command.NewSecretDir(run, false, "")
	dir := filepath.Join(t.TempDir(), "it's 1.1.secrets")
	if err := os.Mkdir(dir+".new", 0o700); err != nil { // of a Put that was cut off
		t.Fatal(err)
	}
	files := map[string][]byte{".env.TOK": []byte("hush\n\x00\n"), "key.pem": []byte(strings.Repeat("hush", 10000)), "none": {}}
	if err := place.Put(t.Context(), "", dir, files); err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		file := filepath.Join(dir, name)
		got, err := os.ReadFile(file)
		if err != nil || string(got) != string(want) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o400 {
			t.Errorf("%s: %v %v", name, st.Mode(), err)
		}
	}
	if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", st.Mode(), err)
	}
	if said := strings.Join(run.words, " "); strings.Contains(said, "hush") {
		t.Error("a command says a value")
	}
	if err := place.Put(t.Context(), "", dir, map[string][]byte{"other": []byte("x")}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "other")); err == nil {
		t.Error("what was there is replaced")
	}
	if err := place.Remove(t.Context(), "", dir); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Dir(dir) + "/*"); len(left) > 0 {
		t.Errorf("%q", left)
	}
	if err := place.Put(t.Context(), "", "/nowhere/x.secrets", files); fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "/nowhere") {
		t.Errorf("%v", err)
	}
}

// TestSecretDirOfAnother: root gives the files to the user, by changing to them or by giving them away.
func TestSecretDirOfAnother(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("root gives files away")
	}
	for _, uid := range []bool{false, true} {
		shared := t.TempDir()
		for d := shared; d != "/"; d = filepath.Dir(d) {
			if st, err := os.Stat(d); err == nil && st.Mode().Perm()&0o011 != 0o011 {
				if err := os.Chmod(d, st.Mode().Perm()|0o011); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := os.Chmod(shared, 0o733|os.ModeSticky); err != nil {
			t.Fatal(err)
		}
		place, dir := command.NewSecretDir(&command.Here{}, uid, ""), filepath.Join(shared, "1.secrets")
		if err := place.Put(t.Context(), "nobody", dir, map[string][]byte{"key": []byte("x")}); err != nil {
			t.Fatal(err)
		}
		said, err := (&command.Here{}).Run(t.Context(), command.Call{Name: "stat", Args: []string{"-c", "%U %a", dir, dir + "/key"}})
		if err != nil || string(said.Stdout) != "nobody 700\nnobody 400\n" {
			t.Errorf("uid %v: %s %v", uid, said.Stdout, err)
		}
		if err := place.Remove(t.Context(), "nobody", dir); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Error("it is not removed")
		}
	}
}
