package planted

import (
	"os"
	"strings"
	"testing"
)

// TestNoBugIsPlanted: an ordinary build has none of them.
func TestNoBugIsPlanted(t *testing.T) {
	for _, b := range Bugs() {
		if b.On {
			t.Errorf("this build has a bug on purpose (%s): %s", b.Tag, b.Does)
		}
	}
}

// TestEveryTagIsListed: each bug has its two files and stands in the list.
func TestEveryTagIsListed(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, b := range Bugs() {
		listed[b.Tag] = true
	}
	found := 0
	for _, f := range files {
		tag, ok := strings.CutSuffix(f.Name(), "_on.go")
		if !ok {
			continue
		}
		found++
		if !listed["planted_"+tag] {
			t.Errorf("%s is not among the bugs", f.Name())
		}
		if _, err := os.Stat(tag + "_off.go"); err != nil {
			t.Error(err)
		}
	}
	if found != len(listed) {
		t.Errorf("%d bugs are listed, %d have files", len(listed), found)
	}
}
