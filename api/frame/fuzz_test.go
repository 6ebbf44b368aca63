package frame

import (
	"bytes"
	"testing"
)

// What is read of any bytes is bounded and, written again, is the bytes that were read.
func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	w := NewWriter(&b)
	for _, p := range []string{"", "ls\n", string(PutWindow(24, 80)), `{"status":3}`} {
		if err := w.Write(Window, []byte(p)); err != nil {
			f.Fatal(err)
		}
		f.Add(bytes.Clone(b.Bytes()))
	}
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, in []byte) {
		r, out := bytes.NewReader(in), bytes.Buffer{}
		w, buf := NewWriter(&out), []byte(nil)
		for {
			kind, payload, grown, err := Read(r, buf)
			if buf = grown; cap(buf) > Max {
				t.Fatalf("%d bytes for a frame", cap(buf))
			}
			if err != nil {
				break
			}
			if err := w.Write(kind, payload); err != nil {
				t.Fatal(err)
			}
			if rows, cols, ok := GetWindow(payload); ok && !bytes.Equal(PutWindow(rows, cols), payload) {
				t.Fatalf("window %x is %d×%d", payload, rows, cols)
			}
		}
		if !bytes.HasPrefix(in, out.Bytes()) {
			t.Fatalf("%x is read as %x", in, out.Bytes())
		}
	})
}
