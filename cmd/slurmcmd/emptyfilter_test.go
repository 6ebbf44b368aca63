package slurmcmd_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/sacct"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/scancel"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/scontrol"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/sinfo"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/slurmcmdtest"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/sprio"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/squeue"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/sshare"
	"github.com/coxswain-sched/coxswain/model/getopt"
)

// filtered are the commands that have filters: how each is called so that something is
// found without one, and its options with a value that are no filters.
var filtered = []struct {
	name    string
	options func() []slurmcmd.Option
	main    func([]string, slurmcmd.Stdio) int
	base    []string
	others  string
}{
	{"squeue", squeue.Options, squeue.Main, []string{"-h"}, "autocomplete clusters format Format iterate sort"},
	{"sacct", sacct.Options, sacct.Main, []string{"-n", "-a", "-S", "2026-11-01"}, "associations autocomplete clusters delimiter endtime file flags format starttime units wckeys"},
	{"sinfo", sinfo.Options, sinfo.Main, []string{"-h", "-N"}, "autocomplete clusters format Format iterate sort"},
	{"sprio", sprio.Options, sprio.Main, []string{"-h"}, "autocomplete clusters format sort"},
	{"sshare", sshare.Options, sshare.Main, []string{"-h", "-U"}, "autocomplete clusters format"},
	{"scancel", scancel.Options, scancel.Main, []string{"-v"}, "autocomplete clusters signal sibling wckey"},
}

// emptyRefused are the filters of which Slurm's command refuses an empty value.
var emptyRefused = []string{"sacct --uid", "sacct --user", "scancel --state", "scancel --user", "sacct --nnodes", "sacct --ncpus", "sacct --timelimit-min", "sacct --timelimit-max"}

// TestEmptyFilter: an empty value of a filter, as of a variable that is not set, chooses
// nothing or is refused. It never counts as no filter.
func TestEmptyFilter(t *testing.T) {
	for _, c := range filtered {
		s := serverOfEverything(t)
		if c.name == "scancel" {
			c.base = append(c.base, "-u", "root")
		}
		if r := s.Run(c.main, "", c.base...); r.Out+changed(s) == "" {
			t.Errorf("%s %q finds nothing: %+v", c.name, c.base, r)
		}
		for _, o := range c.options() {
			if o.Arg != getopt.Required && o.Arg != getopt.Numbers {
				continue
			}
			if others := strings.Fields(c.others); o.Filter == slices.Contains(others, o.Long) {
				t.Errorf("%s --%s: a filter %v, and among the other options of this test as well or not at all", c.name, o.Long, o.Filter)
			}
			if !o.Filter || c.name == "sacct" && o.Long == "jobs" { // sacct -j '' is no list, as in Slurm
				continue
			}
			lines := [][]string{{"--" + o.Long, ""}, {"--" + o.Long + "="}}
			if !strings.HasSuffix(o.Long, "name") { // names of jobs may have commas in them
				lines = append(lines, []string{"--" + o.Long, ","})
			}
			if o.Short != 0 {
				lines = append(lines, []string{"-" + string(o.Short), ""})
			}
			for _, words := range lines {
				s := serverOfEverything(t)
				r := s.Run(c.main, "", append(slices.Clone(c.base), words...)...)
				r.Out = strings.TrimPrefix(r.Out, "Unable to find jobs matching user/id(s) specified\n") // sprio's words
				refused := slices.Contains(emptyRefused, c.name+" --"+o.Long)
				if r.Out != "" || changed(s) != "" || (r.Code != 0) != refused {
					t.Errorf("%s %q: %+v, changed %s", c.name, words, r, changed(s))
				}
			}
		}
	}
}

// TestEmptyWords: an empty word where jobs or nodes are named changes nothing, and is an
// error.
func TestEmptyWords(t *testing.T) {
	for _, c := range []struct {
		main func([]string, slurmcmd.Stdio) int
		line string
	}{
		{scancel.Main, "''"},
		{scancel.Main, "-u root ''"},
		{scancel.Main, "201 ''"},
		{scontrol.Main, "hold ''"},
		{scontrol.Main, "hold jobname="},
		{scontrol.Main, "release ,"},
		{scontrol.Main, "requeue ''"},
		{scontrol.Main, "update JobId= TimeLimit=1"},
		{scontrol.Main, "update NodeName= State=DRAIN Reason=x"},
		{scontrol.Main, "delete ReservationName="},
		{scontrol.Main, "show node ''"},
		{scontrol.Main, "show partition ''"},
		{scontrol.Main, "show reservation="},
		{scontrol.Main, "show licenses ''"},
	} {
		s := serverOfEverything(t)
		r := s.Run(c.main, "", words(t, c.line)...)
		if r.Code == 0 || changed(s) != "" {
			t.Errorf("%s: %+v, changed %s", c.line, r, changed(s))
		}
	}
}

// TestJSONIsServedOrRefused: what has no document does not print text in its place.
func TestJSONIsServedOrRefused(t *testing.T) {
	for line, served := range map[string]bool{
		"scontrol --json show job": true, "scontrol --json show nodes": true, "scontrol --json show partitions": true, "scontrol show config --json": false,
		"scontrol --json show reservations": false, "scontrol --json show licenses": false, "scontrol --json ping": false, "scontrol --json hold 201": false,
		"squeue --json": true, "squeue --start --json": true, "squeue -s --json": false, "squeue --yaml": false,
		"sinfo --json": true, "sinfo -N --json": true, "sinfo -R --json": true, "sinfo -T --json": false, "sinfo --yaml": false,
		"sacct --json": true, "sacct -B -j 201 --json": false, "sacct --env-vars -j 201 --json": false, "sshare --json": false, "sshare --yaml": false,
	} {
		words := strings.Fields(line)
		r := serverOfEverything(t).Run(mains[words[0]], "", words[1:]...)
		if served != (r.Code == 0 && strings.HasPrefix(r.Out, "{")) || !served && (r.Out != "" || !strings.Contains(r.Err, "--json") && !strings.Contains(r.Err, "--yaml")) {
			t.Errorf("%s: %+v", line, r)
		}
	}
}

// TestForgottenJobs: several numbers of which none is known any more are an empty list, and
// a single one is an error, as in Slurm.
func TestForgottenJobs(t *testing.T) {
	for _, c := range []struct {
		line string
		code int
	}{
		{"-h -j 998,999", 0},
		{"-h -s -j 998,999", 0},
		{"-h -r -j 998_1,998_2", 0},
		{"-h --start -j 1.0,2.0", 0},
		{"-h -O jobid -j 998,999", 0},
		{"-h -j 999", 1},
	} {
		r := serverOfEverything(t).Run(squeue.Main, "", strings.Fields(c.line)...)
		if r.Code != c.code || r.Out != "" {
			t.Errorf("squeue %s: %+v", c.line, r)
		}
	}
}

// serverOfEverything is a server that has something to show to every command.
func serverOfEverything(t *testing.T) *slurmcmdtest.Server {
	s := slurmcmdtest.New(t).Queue()
	s.Answer["POST /v1/jobs/change"] = slurmcmdtest.Func(func(body string) any {
		if strings.Contains(body, `"names":[""]`) {
			return api.Changed{}
		}
		return api.Changed{Matched: 1, Changed: 1}
	})
	s.Answer["POST /v1/nodes/change"] = api.Nodes{}
	s.Answer["GET /v1/priorities"] = map[string]any{
		"weights": map[string]float64{"age": 1},
		"jobs":    []map[string]any{{"id": 213, "job": "213", "user": "ben", "partition": "cpu"}},
	}
	s.Answer["GET /v1/shares"] = map[string]any{"shares": []map[string]any{
		{"account": "root", "depth": 0}, {"account": "nlp", "parent": "root", "depth": 1}, {"account": "nlp", "user": slurmcmd.MyName(), "parent": "nlp", "depth": 2},
	}}
	s.Answer["GET /v1/licenses"] = map[string]any{"licenses": []map[string]any{{"name": "matlab", "total": 3}}}
	return s
}

// changed are the changes that were asked for, but for those that select by an empty name.
func changed(s *slurmcmdtest.Server) string {
	for _, a := range s.Asked() {
		if strings.HasPrefix(a, "POST ") && !strings.Contains(s.Body(), `"names":[""]`) || strings.HasPrefix(a, "DELETE ") {
			return a + " " + s.Body()
		}
	}
	return ""
}
