package tutorial

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func TestDifferences(t *testing.T) {
	came := []string{"rank 1 on v1", "rank 0 on v1", "done in 0.25 s", ""}
	for name, c := range map[string]struct{ promised, want []string }{
		"any order":   {[]string{"rank 0 on v1", "rank 1 on v1", "done in 9 s"}, nil},
		"any text":    {[]string{"rank … on v1", "rank … on v1", "done in …"}, nil},
		"any lines":   {[]string{"…", "rank 1 on v1"}, nil},
		"missing":     {[]string{"…", "rank 2 on v1"}, []string{"missing: rank 2 on v1"}},
		"twice":       {[]string{"…", "rank 0 on v1", "rank 0 on v1"}, []string{"missing: rank 0 on v1"}},
		"one is more": {[]string{"rank 0 on v1", "done in 1 s"}, []string{"not on the page: rank 1 on v1"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := differences(c.promised, came); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%q, not %q", got, c.want)
			}
		})
	}
}

func TestReadPage(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	text := "# Title\n<!-- run: true -->\n```sh title=\"a.sh\"\necho a\n```\n```sh\nnot run\n```\n<!-- fails -->\n```console\n$ false\n$ sh a.sh\na\n```\n"
	if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := readPage(page)
	if err != nil {
		t.Fatal(err)
	}
	want := []step{
		{line: 2, command: "true"},
		{line: 3, command: "cat >a.sh <<'END-OF-FILE'\necho a\nEND-OF-FILE"},
		{line: 11, command: "false", shown: true, fails: true},
		{line: 12, command: "sh a.sh", shown: true, output: []string{"a"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nnot\n%+v", got, want)
	}
}
