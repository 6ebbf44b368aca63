package limit

import (
	"os"
	"strings"
	"testing"
)

// TestSlurmKnowsTheWords: every word of a limit is one that squeue prints.
func TestSlurmKnowsTheWords(t *testing.T) {
	b, err := os.ReadFile("../../model/reason/testdata/squeue-reasons.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, w := range strings.Fields(string(b)) {
		known[w] = true
	}
	seen := 0
	check := func(word string) {
		if seen++; !known[word] {
			t.Errorf("%q is no word of squeue", word)
		}
	}
	for w, byOwner := range words {
		for qos, list := range byOwner {
			if !qos && what(w).qosOnly() {
				t.Errorf("accounts have no limit %d", w)
			}
			for _, word := range list {
				check(word)
			}
		}
		if !what(w).qosOnly() && len(byOwner) != 2 || len(byOwner) == 0 {
			t.Errorf("limit %d lacks words", w)
		}
	}
	for _, list := range plainWords {
		for _, word := range list {
			if word != "" {
				check(word)
			}
		}
	}
	if seen < 100 {
		t.Errorf("only %d words", seen)
	}
}
