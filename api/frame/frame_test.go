package frame

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/model/fault"
)

func TestFramesComeAsTheyWent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var wire bytes.Buffer
		w := NewWriter(&wire)
		var want []byte
		for range rapid.IntRange(0, 10).Draw(t, "frames") {
			b := rapid.SliceOf(rapid.Byte()).Draw(t, "payload")
			want = append(want, b...)
			if err := w.Write(Type(rapid.IntRange(0, 6).Draw(t, "type")), b); err != nil {
				t.Fatal(err)
			}
		}
		var got, buf []byte
		for {
			_, payload, grown, err := Read(&wire, buf)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			got, buf = append(got, payload...), grown
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("%q, not %q", got, want)
		}
	})
}

func TestLongPayloadsAreCut(t *testing.T) {
	var wire bytes.Buffer
	long := bytes.Repeat([]byte("x"), 2*Max+5)
	if n, err := NewWriter(&wire).Stream(Stdout).Write(long); n != len(long) || err != nil {
		t.Fatal(n, err)
	}
	frames, total := 0, 0
	for {
		typ, b, _, err := Read(&wire, nil)
		if err == io.EOF {
			break
		}
		if err != nil || typ != Stdout {
			t.Fatal(typ, err)
		}
		frames, total = frames+1, total+len(b)
	}
	if frames != 3 || total != len(long) {
		t.Errorf("%d frames of %d bytes", frames, total)
	}
}

func TestBrokenFrames(t *testing.T) {
	if _, _, _, err := Read(bytes.NewReader([]byte{1, 0xff, 0xff, 0xff, 0xff}), nil); fault.KindOf(err) != fault.Invalid {
		t.Errorf("too long: %v", err)
	}
	for _, b := range [][]byte{{1, 0}, {1, 0, 0, 0, 2}, {1, 0, 0, 0, 2, 'x'}} {
		if _, _, _, err := Read(bytes.NewReader(b), nil); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%v: %v", b, err)
		}
	}
}

func TestWindow(t *testing.T) {
	if r, c, ok := GetWindow(PutWindow(50, 220)); !ok || r != 50 || c != 220 {
		t.Error(r, c, ok)
	}
	if _, _, ok := GetWindow([]byte("abc")); ok {
		t.Error("three bytes are a size")
	}
}
