package localrun

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestTailReadsEachLineOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	tl := &tail{path: path}
	read := func(last bool, want ...string) {
		t.Helper()
		got, err := tl.readLines(last)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("read %q, %v; want %q", got, err, want)
		}
	}
	add := func(text string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	read(false) // it does not exist yet
	add("one\ntw")
	read(false, "one")
	add("o\n\nla")
	read(false, "two", "")
	read(false)
	add("st")
	read(true, "last")
	if err := os.WriteFile(path, []byte("anew\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	read(false, "anew") // truncated and begun again
	add(strings.Repeat("x", maxLine+5) + "\n")
	got, err := tl.readLines(false)
	if err != nil || len(got) != 2 || len(got[0])+len(got[1]) != maxLine+5 {
		t.Fatalf("a line longer than the bound came in %d pieces, %v", len(got), err)
	}
}

func TestAttribution(t *testing.T) {
	a := newAttribution()
	a.noteLine("same", source{0, 0, "v1"})
	a.noteLine("same", source{0, 1, "v2"})
	a.noteLine("own", source{0, 1, "v2"})
	a.noteLine("a: b", source{0, 2, "v3"})
	tests := []struct {
		line string
		rank int // -1: the batch script
	}{
		{"own", 1},
		{"same", 0},
		{"same", 1},
		{"same", -1},
		{"echo of the script", -1},
		{" 2: a: b", 2}, // srun --label
		{"a: b", -1},
	}
	for _, tt := range tests {
		by, ok := a.writerOf(tt.line)
		if ok != (tt.rank >= 0) || ok && by.rank != tt.rank {
			t.Errorf("%q: %+v %v, want rank %d", tt.line, by, ok, tt.rank)
		}
	}
	if a.held != 0 {
		t.Errorf("%d lines are held after all came out", a.held)
	}
}

func TestAttributionForgetsWhatNeverComesOut(t *testing.T) {
	a := newAttribution()
	for range 3*heldLines + 10 {
		a.noteLine("to a file of its own", source{})
	}
	if a.held > heldLines {
		t.Errorf("%d lines are held", a.held)
	}
}

func TestDrainPrintsEverythingToTheEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	const line, lines = "0123456789abcde", 3*readAtOnce/16 + 5
	if err := os.WriteFile(path, []byte(strings.Repeat(line+"\n", lines)+"unfinished"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	f := &follower{screen: &screen{out: bufio.NewWriter(&out), err: io.Discard, raw: true}}
	f.drainOutput(&followed{out: []*tail{{path: path}}, attr: newAttribution()}, true)
	f.screen.flush()
	if got := strings.Count(out.String(), line+"\n"); got != lines || !strings.HasSuffix(out.String(), "unfinished\n") {
		t.Errorf("%d of %d lines were printed, the end is %q", got, lines, out.String()[out.Len()-20:])
	}
}

func TestTailLeavesPipesAloneAndReadsOnAfterAnError(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := (&tail{path: pipe}).readLines(true); len(got) > 0 || err != nil { // it would wait for a writer
		t.Errorf("a pipe read as %q, %v", got, err)
	}
	dir := filepath.Join(t.TempDir(), "gone")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var notes bytes.Buffer
	f := &follower{screen: &screen{out: bufio.NewWriter(io.Discard), err: &notes, raw: true}}
	j := &followed{out: []*tail{{path: filepath.Join(dir, "out")}}, attr: newAttribution()} // below a file: ENOTDIR
	f.drainOutput(j, false)
	f.drainOutput(j, true)
	if strings.Count(notes.String(), "cannot be read") != 1 || len(j.out) != 1 {
		t.Errorf("notes %q, %d files are followed", notes.String(), len(j.out))
	}
}

func TestLastLineOfALargeLog(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	for text, want := range map[string]string{
		"": "", "one": "one", "one\ntwo\n\n": "two", strings.Repeat("x\n", maxLine) + "last\n": "last",
	} {
		if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := lastLine(log); got != want {
			t.Errorf("%d bytes: %q, want %q", len(text), got, want)
		}
	}
}
