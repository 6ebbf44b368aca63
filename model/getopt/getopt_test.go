package getopt_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/model/getopt"
)

var table = getopt.List{
	{Long: "all", Short: 'a'},
	{Long: "states", Short: 't', Arg: getopt.Required},
	{Long: "start"},
	{Long: "json", Arg: getopt.Optional},
	{Long: "jobs", Short: 'j', Arg: getopt.Numbers},
	{Long: "nice", Short: 'n', Arg: getopt.Optional},
	{Long: "tasks-per-node", Arg: getopt.Required, Same: "ntasks-per-node"},
	{Long: "tasks-per-nodes", Arg: getopt.Required, Same: "ntasks-per-node"},
}

// describe writes what a scanner finds: options with their values, words in brackets,
// mistakes in the words of the C library.
func describe(words []string) string {
	var out []string
	scan := getopt.New(table, words)
	for {
		it := scan.Next()
		switch it.Kind {
		case getopt.End:
			return strings.Join(out, " ")
		case getopt.Plain:
			out = append(out, "["+words[it.Word]+"]")
		case getopt.Terminator:
			return strings.Join(append(out, "--", fmt.Sprint(words[it.Next:])), " ")
		case getopt.Found:
			text := it.Option.Canonical()
			if it.HasValue {
				text += "=" + it.Value
			}
			out = append(out, text)
		default:
			out = append(out, it.Err().Error())
		}
	}
}

// TestScan: the errors are those that Slurm 22.05's srun prints for its own options.
func TestScan(t *testing.T) {
	for line, want := range map[string]string{
		"-a -t R x":         "all states=R [x]",
		"-at R":             "all states=R",
		"-tR x -a":          "states=R [x] all",
		"-atR":              "all states=R",
		"--states=R --all":  "states=R all",
		"--states R":        "states=R",
		"--stat R":          "states=R",
		"--json x":          "json [x]",
		"--json=v1":         "json=v1",
		"--json= x":         "json= [x]",
		"-n5 -n 6":          "nice=5 nice [6]",
		"-an":               "all nice",
		"-j 7 8":            "jobs=7 [8]",
		"-j7,8":             "jobs=7,8",
		"-j -a":             "jobs all",
		"--jobs 7":          "jobs=7",
		"--tasks=2":         "ntasks-per-node=2",
		"-a -- -a":          "all -- [-a]",
		"-":                 "[-]",
		"--s":               "option '--s' is ambiguous; possibilities: '--states' '--start'",
		"--s=1 -a":          "option '--s=1' is ambiguous; possibilities: '--states' '--start' all",
		"--bogus=1 x":       "unrecognized option '--bogus=1' [x]",
		"-x":                "invalid option -- 'x'",
		"-axt R":            "all invalid option -- 'x' states=R",
		"-t":                "option requires an argument -- 't'",
		"--sta --states":    "option '--sta' is ambiguous; possibilities: '--states' '--start' option '--states' requires an argument",
		"--stat":            "option '--states' requires an argument",
		"--all=1 x":         "option '--all' doesn't allow an argument [x]",
		"--al=":             "option '--all' doesn't allow an argument",
		"--tasks-per-nod":   "option '--tasks-per-node' requires an argument",
		"--tasks-per-nodes": "option '--tasks-per-nodes' requires an argument",
	} {
		if got := describe(strings.Fields(line)); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", line, got, want)
		}
	}
}

// TestValues: a value is where the item says.
func TestValues(t *testing.T) {
	word := rapid.SampledFrom([]string{"-a", "-at", "-tR", "-an5", "--states=R", "--st", "--json=", "--jobs", "7", "", "-", "--", "x", "-é", "--=x"})
	rapid.Check(t, func(r *rapid.T) {
		words := rapid.SliceOf(word).Draw(r, "words")
		scan := getopt.New(table, words)
		read := 0
		for {
			it := scan.Next()
			if it.Next < read || it.Kind != getopt.End && it.Word >= it.Next {
				r.Fatalf("%q: goes back: %+v", words, it)
			}
			read = it.Next
			if it.Kind == getopt.Found && it.HasValue && words[it.Next-1][it.ValueAt:] != it.Value {
				r.Fatalf("%q: the value is elsewhere: %+v", words, it)
			}
			if it.Kind == getopt.End {
				break
			}
		}
		if read != len(words) {
			r.Fatalf("%q: %d words were read", words, read)
		}
	})
}
