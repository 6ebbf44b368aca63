package manifest

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/coxswain-sched/coxswain/spec/manifest/fields"
)

// megabyte is a text of at least so many bytes, of documents as people write them.
func megabyte(tb testing.TB) []byte {
	tb.Helper()
	var b bytes.Buffer
	for b.Len() < 1<<20 {
		for _, name := range []string{"pod", "cronjob", "pytorchjob", "serving", "podfields", "mpijob"} {
			data, err := os.ReadFile("testdata/" + name + ".yaml")
			if err != nil {
				tb.Fatal(err)
			}
			b.WriteString("---\n")
			b.Write(data)
		}
	}
	return b.Bytes()
}

// BenchmarkRead reads a megabyte, which has to take at most 50 ms.
func BenchmarkRead(b *testing.B) {
	data := megabyte(b)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := Read("f.yaml", data); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReadJSON reads the same in JSON.
func BenchmarkReadJSON(b *testing.B) {
	f, err := Read("f.yaml", megabyte(b))
	if err != nil {
		b.Fatal(err)
	}
	var text bytes.Buffer
	text.WriteString(`{"apiVersion":"v1","kind":"List","items":[`)
	for i, d := range f.Documents {
		if i > 0 {
			text.WriteByte(',')
		}
		text.Write(d.JSON(""))
	}
	text.WriteString("]}")
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		if _, err := Read("f.json", text.Bytes()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCheck looks at all fields of a megabyte for one engine.
func BenchmarkCheck(b *testing.B) {
	f, err := Read("f.yaml", megabyte(b))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		for _, d := range f.Documents {
			if _, err := d.Check(fields.Local); err != nil && err.Error() == "" {
				b.Fatal(fmt.Sprint(err))
			}
		}
	}
}
