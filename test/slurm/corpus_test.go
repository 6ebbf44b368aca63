package slurmtest

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// header is one record of the public headers: the #SBATCH lines of a script.
type header struct {
	Source   string       `json:"source"`
	Shebang  string       `json:"shebang"`
	Lines    []string     `json:"lines"`
	Accepted bool         `json:"accepted"`
	Options  [][2]*string `json:"options"` // name, value; no value is null
}

// script is the header as a script file whose program is true. A script that had no
// shebang begins with its first directive.
func (h header) script() string {
	text := strings.Join(h.Lines, "\n") + "\ntrue\n"
	if strings.HasPrefix(h.Shebang, "#!") {
		text = h.Shebang + "\n" + text
	}
	return text
}

// values lists the values that were given to an option.
func (h header) values(option string) []string {
	var out []string
	for _, o := range h.Options {
		if *o[0] == option && o[1] != nil {
			out = append(out, *o[1])
		}
	}
	return out
}

func readHeaders(t *testing.T) []header {
	t.Helper()
	f, err := os.Open("../../spec/sbatch/testdata/sbatch-headers.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var all []header
	for d := json.NewDecoder(bufio.NewReader(z)); d.More(); {
		var h header
		if err := d.Decode(&h); err != nil {
			t.Fatal(err)
		}
		all = append(all, h)
	}
	if len(all) < 600 {
		t.Fatalf("only %d headers", len(all))
	}
	return all
}
