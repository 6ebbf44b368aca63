package cli

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// LastJob is the word for the newest job of the caller.
const LastJob = "last"

// namedJobs is how many jobs of one name are looked at.
const namedJobs = 100

// resolveJobs makes numbers of jobs of the words of a command that takes jobs: a job's name, and
// last. Numbers stay as they are.
func (a *App) resolveJobs(cmd *cobra.Command, c *client.Client, args []string) ([]string, error) {
	first, end, list := jobWords(cmd, args)
	out := slices.Clone(args[:first])
	for _, word := range args[first:end] {
		ids, err := resolveJob(cmd.Context(), c, word, list)
		if fault.KindOf(err) == fault.NotFound && word != LastJob {
			if ok, refused := resolveService(cmd.Context(), c, cmd, word); refused != nil {
				return nil, refused
			} else if ok {
				ids, err = []string{word}, nil
			}
		}
		if err != nil {
			return nil, err
		}
		out = append(out, ids...)
	}
	return append(out, args[end:]...), nil
}

// jobWords are the bounds of the words of a command line that name jobs; list says that a name of
// several jobs means all of them.
func jobWords(cmd *cobra.Command, args []string) (first, end int, list bool) {
	_, use, _ := strings.Cut(cmd.Use, " ")
	switch {
	case !strings.Contains(use, "JOB") || len(args) == 0:
		return 0, 0, false
	case strings.HasPrefix(use, "SIGNAL "):
		return 1, len(args), false
	case !strings.Contains(use, "JOB…"):
		return 0, 1, false
	}
	return 0, len(args), strings.Contains(use, "[JOB…]")
}

// takesServices marks commands that take the name of a service where others take a job.
const takesServices = "services"

// TakeServices marks a command that takes the name of a service in the place of a job: it gets the
// name as it is. IsJob tells the two apart.
func TakeServices(cmd *cobra.Command) *cobra.Command {
	cmd.Annotations = map[string]string{takesServices: "true"}
	return cmd
}

// IsJob reports whether a word of a command line, as WithServer hands it over, names a job.
func IsJob(word string) bool { return isJobNumber(word) }

// resolveService finds a service of a name for a command that takes services; others are told to
// name a replica. ok is false if there is none.
func resolveService(ctx context.Context, c *client.Client, cmd *cobra.Command, word string) (ok bool, err error) {
	s, err := c.Service(ctx, word)
	switch {
	case err != nil:
		return false, nil // no such service, or none at all: the word is a job's
	case cmd.Annotations[takesServices] != "":
		return true, nil
	}
	replica := "0"
	if len(s.Parts) > 0 {
		replica = strconv.FormatUint(uint64(s.Parts[0].Index), 10)
	}
	_, short, _ := strings.Cut("/"+s.Name, "/")
	return false, fault.New(fault.Invalid, "%s is a service, and a job is meant here", word).
		Advise("name a replica, such as %s.%s (cox service show %s lists them)", short[strings.LastIndexByte(short, '/')+1:], replica, word)
}

// resolveJob makes the numbers of a word; all of them for a list, otherwise one.
func resolveJob(ctx context.Context, c *client.Client, word string, list bool) ([]string, error) {
	if isJobNumber(word) {
		return []string{word}, nil
	}
	name, rank := word, ""
	for {
		ids, err := findNamed(ctx, c, name)
		if err != nil {
			return nil, err
		}
		switch {
		case len(ids) == 1 || list && len(ids) > 0:
			for i := range ids {
				ids[i] += rank
			}
			return ids, nil
		case len(ids) > 1:
			return nil, fault.New(fault.Invalid, "%s: several jobs have this name: %s", name, strings.Join(shortenList(ids), ", ")).Advise("name the one that you mean by its number")
		}
		before, after, ok := strings.Cut(name, ".")
		if i := strings.LastIndexByte(name, '.'); i > 0 {
			before, after = name[:i], name[i+1:]
		}
		if _, err := strconv.Atoi(after); !ok || err != nil {
			if word == LastJob {
				return nil, fault.New(fault.NotFound, "last: you have submitted no job to this server yet").Advise("cox submit FILE submits one")
			}
			return nil, fault.New(fault.NotFound, "%s: no job has this number or name", word).Advise("cox queue lists the jobs that run and wait, cox history those that ended")
		}
		name, rank = before, "."+after+rank // a rank, or a step and a rank, of a job of that name
	}
}

func shortenList(ids []string) []string {
	if len(ids) > 8 {
		return append(slices.Clone(ids[:8]), "…")
	}
	return ids
}

// isJobNumber reports whether a word begins with the number of a job. What follows it is for the
// server to judge.
func isJobNumber(word string) bool {
	for part := range strings.SplitSeq(word, ",") { // as in 7,8
		if _, err := slurmfmt.ParseJobID(part); err == nil {
			return true
		}
		if part == "" || part[0] < '0' || part[0] > '9' {
			return false
		}
		if digits := strings.TrimLeft(part, "0123456789"); digits != "" && !strings.ContainsRune("._[+", rune(digits[0])) {
			return false
		}
	}
	return true
}

// findNamed finds the jobs of a name: the caller's before those of others, live ones before those
// that have ended.
func findNamed(ctx context.Context, c *client.Client, name string) ([]string, error) {
	info, err := c.Info(ctx) // by a token the caller may have another name there
	if err != nil {
		return nil, err
	}
	me := []string{cmp.Or(info.You.Name, Caller().User)}
	if name == LastJob {
		page, err := c.HistoryPage(ctx, client.HistoryQuery{Select: api.Select{Users: me}, Limit: 1})
		if err != nil || len(page.Jobs) == 0 {
			return nil, err
		}
		return numbersOf(page.Jobs), nil
	}
	for _, users := range [][]string{me, nil} {
		page, err := c.HistoryPage(ctx, client.HistoryQuery{Select: api.Select{Names: []string{name}, Users: users}, Limit: namedJobs})
		if err != nil {
			return nil, err
		}
		live := slices.DeleteFunc(slices.Clone(page.Jobs), func(j api.Job) bool { return !j.Ended.IsZero() })
		if len(live) > 0 {
			return numbersOf(live), nil
		}
		if len(page.Jobs) > 0 {
			return numbersOf(page.Jobs), nil
		}
	}
	return nil, nil
}

// numbersOf are the numbers of jobs, each array once.
func numbersOf(jobs []api.Job) (out []string) {
	for i := range jobs {
		id := jobs[i].ID.String()
		if jobs[i].Array != nil {
			id = jobs[i].Array.Job.String()
		}
		if !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}
