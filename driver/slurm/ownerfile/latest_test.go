package ownerfile

import (
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"
)

// snapshot is a file as it was when it was opened: so a network file system shows it.
type snapshot struct{ *strings.Reader }

func (snapshot) Close() error { return nil }

// TestWhatWasWrittenElsewhere: the end of a file is looked for by opening it anew.
//
// Seen to fail with: one file, opened once.
func TestWhatWasWrittenElsewhere(t *testing.T) {
	text, gone := "first\n", false
	open := func() (logFile, error) {
		if gone {
			return nil, fs.ErrNotExist
		}
		return snapshot{strings.NewReader(text)}, nil
	}
	f, _ := open()
	l := &latestFile{open: open, file: f}
	read := func() string {
		b, err := io.ReadAll(l)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	var got []string
	got = append(got, read())
	text += "second\n"
	got = append(got, read(), read())
	text += "last"
	got = append(got, read())
	text = "short"
	got = append(got, read())
	gone = true
	got = append(got, read())
	if want := "first\n|second\n||last||"; strings.Join(got, "|") != want {
		t.Errorf("%q, want %q", strings.Join(got, "|"), want)
	}
	if _, err := l.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}
