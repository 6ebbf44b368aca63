package demo_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"testing"

	"github.com/coxswain-sched/coxswain/sim/demo"
)

var update = flag.Bool("update", false, "rewrite the golden output")

func TestDeadlock(t *testing.T) {
	var b bytes.Buffer
	if err := demo.Deadlock(&b); err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/deadlock.txt"
	if *update {
		if err := os.WriteFile(golden, b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), want) {
		t.Errorf("got\n%s\nwant\n%s", b.Bytes(), want)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestDeadlockReportsAWriteError(t *testing.T) {
	if err := demo.Deadlock(full{}); err == nil {
		t.Error("a writer that fails was not noticed")
	}
}
