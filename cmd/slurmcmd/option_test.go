package slurmcmd_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/model/getopt"
)

// TestOptions: options as getopt reads them.
func TestOptions(t *testing.T) {
	for _, c := range []struct {
		args, want, rest, err string
	}{
		{"-a -t R x", "a t=R", "x", ""},
		{"-at R", "a t=R", "", ""},
		{"-tR x -a", "t=R a", "x", ""},
		{"--states=R --all", "t=R a", "", ""},
		{"--states R", "t=R", "", ""},
		{"--stat R", "t=R", "", ""},
		{"--json x", "json=", "x", ""},
		{"--json=v1", "json=v1", "", ""},
		{"-j 7 8", "j=7", "8", ""},
		{"-j7,8", "j=7,8", "", ""},
		{"-j -a", "j= a", "", ""},
		{"--jobs 7", "j=7", "", ""},
		{"-- -a", "", "-a", ""},
		{"-", "", "-", ""},
		{"--s", "", "", "option '--s' is ambiguous; possibilities: '--states' '--start'"},
		{"--bogus=1", "", "", "unrecognized option '--bogus=1'"},
		{"-x", "", "", "invalid option -- 'x'"},
		{"-ax", "a", "", "invalid option -- 'x'"},
		{"-t", "", "", "option requires an argument -- 't'"},
		{"--states", "", "", "option '--states' requires an argument"},
		{"--all=1", "", "", "option '--all' doesn't allow an argument"},
	} {
		var got []string
		note := func(name string, value bool) func(string) error {
			return func(v string) error {
				if value {
					name += "=" + v
				}
				got = append(got, name)
				return nil
			}
		}
		rest, err := slurmcmd.Parse([]slurmcmd.Option{
			{Long: "all", Short: 'a', Do: note("a", false)},
			{Long: "states", Short: 't', Arg: getopt.Required, Do: note("t", true)},
			{Long: "start", Do: note("start", false)},
			{Long: "json", Arg: getopt.Optional, Do: note("json", true)},
			{Long: "jobs", Short: 'j', Arg: getopt.Numbers, Do: note("j", true)},
		}, strings.Fields(c.args))
		text := ""
		if err != nil {
			text = err.Error()
		}
		if text != c.err || strings.Join(got, " ") != c.want || strings.Join(rest, " ") != c.rest {
			t.Errorf("%s: %q, rest %q, error %q; want %q, %q, %q", c.args, got, rest, text, c.want, c.rest, c.err)
		}
	}
}

func TestSplit(t *testing.T) {
	got := slurmcmd.Split("7,8_[1-4,9%2],,n[1,3],x")
	if want := []string{"7", "8_[1-4,9%2]", "n[1,3]", "x"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
