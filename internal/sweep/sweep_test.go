package sweep

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestEveryPlaceIsChangedAlone(t *testing.T) {
	doc := `{"a":[{"n":1},"x"],"b":null,"c":{"d":true}}`
	seen, places := map[string]bool{}, map[string]int{}
	for c := range JSON([]byte(doc)) {
		if !json.Valid(c.Doc) {
			t.Fatalf("%s is no JSON: %s", c.What, c.Doc)
		}
		if string(c.Doc) == doc {
			t.Errorf("%s changes nothing", c.What)
		}
		if seen[c.What] {
			t.Errorf("%s comes twice", c.What)
		}
		seen[c.What] = true
		place, _, _ := strings.Cut(c.What, ":")
		places[place]++
	}
	for _, p := range []string{"", "a", "a[0]", "a[0].n", "a[1]", "b", "c", "c.d"} {
		if places[p] < 5 {
			t.Errorf("%q is changed %d times", p, places[p])
		}
	}
	for _, w := range []string{"a[0].n: -1", "a[1]: left out", "a[1]: \"\"", "c.d: left out", "c: one member more", "a: backwards"} {
		if !seen[w] {
			t.Errorf("no %s", w)
		}
	}
	for c := range JSON([]byte(`{"a":1,"b":[2]}`)) {
		if strings.HasPrefix(c.What, "a:") && !strings.Contains(string(c.Doc), `"b":[2]`) {
			t.Errorf("%s: %s", c.What, c.Doc)
		}
	}
	n := 0
	for range JSON([]byte(doc)) {
		if n++; n == 3 {
			break
		}
	}
	if n != 3 {
		t.Errorf("%d changes after a break", n)
	}
}
