package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/internal/sweep"
	"github.com/coxswain-sched/coxswain/spec"
)

// checkReading reads a text, and checks what holds whatever it is: an error names the file, and the
// line of what is wrong; a document that was read has a mark for every field, and its JSON reads the
// same again.
func checkReading(t *testing.T, what string, data []byte) (*File, error) {
	t.Helper()
	f, err := Read("f.yaml", data)
	if err != nil {
		var at *spec.Error
		if !errors.As(err, &at) || at.File != "f.yaml" || at.Message == "" {
			t.Fatalf("%s: %v is no error with a place", what, err)
		}
		for _, e := range append([]*spec.Error{at}, at.Others...) {
			if e.Line == 0 && !strings.Contains(e.Message, "more errors") && !strings.Contains(e.Message, "no manifest") && !strings.Contains(e.Message, "larger than") {
				t.Fatalf("%s: %q has no line", what, e.Message)
			}
		}
		return nil, err
	}
	for _, d := range f.Documents {
		paths := map[string]bool{}
		for _, engine := range engines {
			for _, u := range d.Uses(engine) {
				if u.Rule == nil || !strings.ContainsRune("y>~n", rune(u.Mark)) {
					t.Fatalf("%s: %s has no mark", what, u.Path)
				}
				paths[u.Path] = true
			}
			if _, err := d.Check(engine); err != nil && !errors.As(err, new(*spec.Error)) {
				t.Fatalf("%s: %v is no error with a place", what, err)
			}
		}
		var value any
		if err := json.Unmarshal(d.JSON(""), &value); err != nil {
			t.Fatalf("%s: %v in %s", what, err, d.JSON(""))
		}
		again, err := Read("f.json", d.JSON(""))
		if err != nil || len(again.Documents) != 1 || string(again.Documents[0].JSON("")) != string(d.JSON("")) {
			t.Fatalf("%s: its JSON does not read the same: %v\n%s", what, err, d.JSON(""))
		}
	}
	return f, nil
}

// TestSweep changes each value of each document in turn: left out, doubled, of another type, too
// large. A change that is refused is refused with the line of a field that is there.
func TestSweep(t *testing.T) {
	stride := 17 // of the changes; each run makes the same ones
	if os.Getenv("COX_LONG") != "" {
		stride = 1
	}
	n, refused := 0, 0
	for _, path := range documentFiles(t) {
		f, _ := readTestdata(t, path)
		for _, d := range f.Documents {
			for change := range sweep.JSON(d.JSON("")) {
				if n++; n%stride != 0 {
					continue
				}
				if _, err := checkReading(t, path+", "+d.Label()+": "+change.What, change.Doc); err != nil {
					refused++
				}
			}
		}
	}
	t.Logf("%d changes, 1 of %d made, %d refused", n, stride, refused)
	if refused < 500 {
		t.Errorf("only %d changes were refused", refused)
	}
}

// TestWrongTypesNameTheField gives each field of each kind a value of a type that it does not take:
// the error has its line and its path.
func TestWrongTypesNameTheField(t *testing.T) {
	for _, path := range documentFiles(t) {
		f, data := readTestdata(t, path)
		lines := strings.Split(string(data), "\n")
		for _, d := range f.Documents {
			if d.Kind.Type() == nil {
				continue
			}
			for _, u := range d.Uses(engines[0]) {
				n := d.Node(u.Path)
				if strings.Contains(u.Path, "parameters") || u.Path == "apiVersion" || u.Path == "kind" || strings.HasPrefix(u.Path, "status") || n.Place.Len == 0 || n.Place.Len != len(n.Text) {
					continue // anything goes there, or it is not on one line
				}
				at := lines[n.Place.Line-1]
				changed := slices.Clone(lines)
				changed[n.Place.Line-1] = at[:n.Place.Col-1] + "[[1]]" + at[n.Place.Col-1+n.Place.Len:]
				_, err := Read("f.yaml", []byte(strings.Join(changed, "\n")))
				want := fmt.Sprintf("f.yaml:%d:", n.Place.Line)
				if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), u.Path[strings.LastIndexAny(u.Path, ".]")+1:]) {
					t.Errorf("%s, %s: %s of a wrong type: %v, want %s", path, d.Label(), u.Path, err, want)
				}
			}
		}
	}
}

func FuzzRead(f *testing.F) {
	files, err := os.ReadDir("testdata")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		if data, err := os.ReadFile("testdata/" + file.Name()); err == nil && strings.HasSuffix(file.Name(), ".yaml") {
			f.Add(data)
		}
	}
	f.Add([]byte(`{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"name":"a"}]}}`))
	f.Add([]byte("apiVersion: v1\nkind: List\nitems:\n- &a {apiVersion: v1, kind: Pod}\n- *a\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		checkReading(t, "the text", data)
	})
}
