package yaml

import (
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/spec"
)

// TestSyntaxIsExplained: what the library says of a broken text is said in the words of whoever wrote it,
// with its place and a remedy.
//
// Seen to fail with: a message of the library that syntaxProblems does not have.
func TestSyntaxIsExplained(t *testing.T) {
	for text, want := range map[string]string{
		"a: b: c\n":             "1:5: this value contains a colon and a blank",
		"a\nb: 1\n":             "2:2: this field is indented below a line that already has a value, or that lacks its colon",
		"a: 1\n  b: 2\n":        "2:4: this field is indented below a line that already has a value",
		"a: @x\n":               "1:4: this value begins with a character that needs quotes",
		"a: %x\n":               "1:4: this value begins with a character that needs quotes",
		"a:\n  - x\n  y: 1\n":   "3:3: this line is neither an entry of the list above it nor a field beside that list",
		"a: [1, 2\nb: 3\n":      "2:2: a list that begins with [ has no ]",
		"a: {x: 1\nb: 3\n":      "2:2: fields that begin with { have no }",
		"a: \"x\n":              "1:1: a text in quotes has no quote at its end",
		"a: 'x\n":               "1:1: a text in quotes has no quote at its end",
		"a: \"\\q\"\n":          "1:5: this text in double quotes has a \\ before a character that needs none",
		"a: - x\n":              "1:4: an entry of a list cannot follow a name on the same line",
		"\ta: 1\n":              "1:1: a tab indents this line",
		"a:\n\tb: 1\n":          "2:1: a tab indents this line",
		"a:\n   b: 1\n  c: 2\n": "3:3: the indentation of this line matches no field above it",
		"a: \"x\" y\n":          "1:8: something follows the end of a value",
		"a: [1]]\n":             "1:7: something follows the end of a value",
		"a: |x\n  y\n":          "1:5: something follows | or > on the same line",
	} {
		_, err := Parse(spec.Source{Name: "f.yaml", Data: []byte(text)})
		if err == nil || !strings.HasPrefix(err.Error(), "f.yaml:"+want) || strings.Count(err.Error(), "\n") < 2 {
			t.Errorf("%q:\n%v\nwant %s, and a remedy", text, err, want)
		}
	}
}
