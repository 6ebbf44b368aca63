package archtest

import (
	"regexp"
	"slices"
	"testing"
)

// TestEveryFileHasItsPlace: the comment of a package of many files names every file, and no file
// that is not there, so that whoever looks for a rule of the core, or for what the Kubernetes engine
// does, finds it.
//
// Seen to fail with: a file that is left out, and one that was renamed.
func TestEveryFileHasItsPlace(t *testing.T) {
	frame := map[string][]string{ // what need not be named
		"sched":               {"doc.go", "api.go", "core.go"},
		"driver/kube":         {"doc.go"},
		"driver/kube/cluster": nil, "agent/podagent": nil, "driver/kube/dra": {"dra.go"}, "test/testcluster/kubelab": nil, "driver/kube/render": nil,
	}
	says, there := map[string]string{}, map[string][]string{}
	for _, s := range sources(t) {
		if _, ok := frame[s.dir]; ok && !s.test {
			says[s.dir] += s.ast.Doc.Text()
			there[s.dir] = append(there[s.dir], s.file)
		}
	}
	for pkg, frame := range frame {
		named := regexp.MustCompile(`\b[a-z0-9_]+\.go\b`).FindAllString(says[pkg], -1)
		for _, name := range there[pkg] {
			if !slices.Contains(named, name) && !slices.Contains(frame, name) {
				t.Errorf("%s/%s: the package's comment does not say what it is about", pkg, name)
			}
		}
		for _, name := range named {
			if !slices.Contains(there[pkg], name) {
				t.Errorf("the comment of %s names %s, which is not there", pkg, name)
			}
		}
		if len(there[pkg]) == 0 {
			t.Errorf("%s has no files", pkg)
		}
	}
}

// fileCeilings lists the packages of more than 30 files, with how many they have; these only fall.
var fileCeilings = map[string]int{"sched": 55}

// TestNoRoomIsTooLarge: who opens a package sees its files on one screen.
func TestNoRoomIsTooLarge(t *testing.T) {
	files := map[string]int{}
	for _, s := range sources(t) {
		if !s.test {
			files[s.dir]++
		}
	}
	for dir, n := range files {
		ceiling, listed := fileCeilings[dir]
		switch {
		case !listed && n > 30:
			t.Errorf("%s has %d files, of at most 30: give a part with a job of its own a package", dir, n)
		case listed && n > ceiling:
			t.Errorf("%s has %d files, of at most %d", dir, n, ceiling)
		case listed && n < ceiling:
			t.Errorf("%s has %d files, and fileCeilings says %d: lower it, or remove the row below 31", dir, n, ceiling)
		}
	}
}
