package layout_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/layout"
)

func letters(l byte) (int, bool) { i := strings.IndexByte("abc", l); return i, i >= 0 }

func row(f layout.Format, values ...string) string {
	return string(f.Append(nil, func(b []byte, i int) []byte { return append(b, values[i]...) }))
}

func TestLetters(t *testing.T) {
	for _, c := range []struct{ spec, want, unknown string }{
		{"%a %b", "one two\n", ""},
		{"%5a|%.5b|", "one  |  two|\n", ""},
		{"%.2a%1b", "ont\n", ""},
		{"x%ay%%z", "xoney%z\n", ""},
		{"%9", "%9\n", ""},
		{"plain", "plain\n", "plain"},
		{"%c", "ünïcödé\n", ""},
		{"%.9c|%3c", "  ünïcödé|ünï\n", ""},
		{"%x1 %a", "%x1 one\n", "x1 "},
	} {
		unknown := ""
		f := layout.Letters(c.spec, letters, func(text string) { unknown = text })
		if got := row(f, "one", "two", "ünïcödé"); got != c.want || unknown != c.unknown {
			t.Errorf("%q prints %q and complains of %q, want %q and %q", c.spec, got, unknown, c.want, c.unknown)
		}
	}
}

func TestNames(t *testing.T) {
	find := func(n string) (int, bool) { i := strings.Index("one two", n); return min(i, 1), i >= 0 && n != "" }
	for spec, want := range map[string]string{
		"one:6,two:.5,ONE":     "a     bcdefa   \n",
		"one:###x,two:###x":    "a###xbcdefgh###x\n",
		"one:3|,two:.9;":       "a  |  bcdefgh;\n",
		"one:.|,one:.3,one: x": "a|  aa x\n",
		"two:,two":             "bcdefghbcde\n",
	} {
		f, err := layout.Names(spec, 4, find)
		if err != nil {
			t.Fatal(err)
		}
		if got := row(f, "a", "bcdefgh"); got != want {
			t.Errorf("%s prints %q, want %q", spec, got, want)
		}
	}
	for _, spec := range []string{"three", ""} {
		if _, err := layout.Names(spec, 4, find); err == nil {
			t.Errorf("%q is taken", spec)
		}
	}
}

// TestWidth: a column with a width is exactly that wide, whatever stands in it.
func TestWidth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := layout.Column{
			Width: rapid.IntRange(1, 30).Draw(t, "width"), Right: rapid.Bool().Draw(t, "right"), Mark: rapid.Bool().Draw(t, "mark"),
		}
		v := rapid.StringMatching(`[a-zü€😀 ]{0,40}`).Draw(t, "value")
		got := strings.TrimSuffix(row(layout.Format{c}, v), "\n")
		if n := utf8.RuneCountInString(got); n != c.Width {
			t.Fatalf("%q in %+v is %q, %d wide", v, c, got, n)
		}
		if utf8.RuneCountInString(v) <= c.Width && strings.TrimSpace(got) != strings.TrimSpace(v) {
			t.Fatalf("%q became %q", v, got)
		}
	})
}
