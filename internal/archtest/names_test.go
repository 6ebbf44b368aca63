package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// oneWordShare is how many percent of a package's unexported functions and methods may have a
// name of one plain word, which says too little to somebody who searches for what it does.
// Packages in oneWordCeilings may have more, until they are renamed.
const oneWordShare = 25

// oneWordCeilings lists the packages above oneWordShare with the number of such functions that
// they have. A number here only falls: the test fails where a package has more, and where it has
// less, so that the number is lowered with it.
var oneWordCeilings = map[string]int{}

var plainWord = regexp.MustCompile(`^[a-z]+$`)

// TestFunctionsSayWhatTheyDo counts unexported functions of one plain word, package by package.
//
// Seen to fail with: a function renamed to one word in a package of few, and one named by two in a
// package with a ceiling.
func TestFunctionsSayWhatTheyDo(t *testing.T) {
	all, plain := map[string]int{}, map[string]int{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join("../..", s.dir, s.file), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Name.IsExported() || fn.Name.Name == "main" || fn.Name.Name == "init" {
				continue
			}
			all[s.dir]++
			if plainWord.MatchString(fn.Name.Name) {
				plain[s.dir]++
			}
		}
	}
	sum, of := 0, 0
	for dir, n := range all {
		sum, of = sum+plain[dir], of+n
		ceiling, listed := oneWordCeilings[dir]
		share := 100 * plain[dir] / n
		switch few := n < 12 && plain[dir] <= 3; {
		case share > oneWordShare && !few && (!listed || plain[dir] > ceiling):
			t.Errorf("%s: %d of %d unexported functions are named by one plain word (at most %d %%, or %d here): say what they do", dir, plain[dir], n, oneWordShare, ceiling)
		case listed && plain[dir] < ceiling:
			t.Errorf("%s: %d unexported functions are named by one plain word, and oneWordCeilings says %d: lower it, or remove the row below %d %%", dir, plain[dir], ceiling, oneWordShare)
		}
	}
	for dir := range oneWordCeilings {
		if all[dir] == 0 {
			t.Errorf("oneWordCeilings names %s, which is not there", dir)
		}
	}
	t.Logf("%d of %d unexported functions are named by one plain word", sum, of)
	if 100*sum > 25*of {
		t.Errorf("%d of %d unexported functions are named by one plain word, more than a quarter", sum, of)
	}
	if os.Getenv("COX_NAMES") != "" {
		for dir, n := range plain {
			if 100*n > oneWordShare*all[dir] && (all[dir] >= 12 || n > 3) {
				t.Logf("\t%q: %d,", dir, n)
			}
		}
	}
}
