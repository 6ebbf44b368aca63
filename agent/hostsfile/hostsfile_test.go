package hostsfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var two = []Host{{Name: "v1", Address: "198.18.0.2"}, {Name: "v2", Address: "198.18.0.3"}}

// A block comes and goes, and every other byte stays.
func TestBlocks(t *testing.T) {
	name := filepath.Join(t.TempDir(), "hosts")
	const mine = "127.0.0.1 localhost\n# a comment\n\n10.0.0.1\tgw" // no last line end
	if err := os.WriteFile(name, []byte(mine), 0o644); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b", "a"} {
		if err := Put(name, id, "of a test", two); err != nil {
			t.Fatal(err)
		}
	}
	text := readText(t, name)
	if n := strings.Count(text, "198.18.0.2\tv1\n"); n != 2 {
		t.Errorf("%d lines for v1, want one of each block:\n%s", n, text)
	}
	if after, err := os.Stat(name); err != nil || !os.SameFile(before, after) {
		t.Errorf("the file is another one now (%v): mounts over it are lost", err)
	}
	if err := Remove(name, "a"); err != nil {
		t.Fatal(err)
	}
	if text := readText(t, name); strings.Contains(text, "begin a") || !strings.Contains(text, "begin b") {
		t.Errorf("a was to go, b to stay:\n%s", text)
	}
	if err := Remove(name, "b"); err != nil {
		t.Fatal(err)
	}
	if text := readText(t, name); text != mine+"\n" {
		t.Errorf("%q, want %q", text, mine+"\n")
	}
	if err := Remove(filepath.Join(t.TempDir(), "none"), "a"); err != nil {
		t.Errorf("a file that is not there has no block: %v", err)
	}
}

// A block without an end takes nothing with it that may be somebody else's.
func TestDamagedBlock(t *testing.T) {
	text := "# coxswain begin a: x\n10.1.1.1 precious\n" + Block("b", "y", two)
	if got, want := Without(text, "a"), "10.1.1.1 precious\n"+Block("b", "y", two); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := Without(text, ""); got != "10.1.1.1 precious\n" {
		t.Errorf("%q", got)
	}
}

// A node's file has the machine's lines without the names that nodes take.
func TestMerge(t *testing.T) {
	machine := "127.0.0.1\tlocalhost\n127.0.1.1 big.site big # this machine\n10.0.0.1 v1\n" + Block("a", "x", []Host{{Name: "w1", Address: "198.18.9.2"}})
	hosts := append([]Host{{Name: "big", Address: "198.18.0.1"}}, two...)
	const want = "127.0.0.1\tlocalhost\n127.0.1.1\tbig.site\n198.18.0.1\tbig\n198.18.0.2\tv1\n198.18.0.3\tv2\n"
	if got := Merge(machine, hosts); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if names := Names(machine); !names["localhost"] || !names["big"] || !names["w1"] || names["127.0.0.1"] || names["this"] {
		t.Errorf("%v", names)
	}
}

func readText(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
