package plane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
)

// Submit hands in an sbatch script and returns the job's name. Its output goes nowhere
// unless args say so.
func (p *Plane) Submit(script string, args ...string) string {
	p.T.Helper()
	got, err := p.TrySubmit(script, args...)
	p.failOn(err)
	return got.ID.String()
}

// TrySubmit is Submit, where an error is part of the story.
func (p *Plane) TrySubmit(script string, args ...string) (*api.Submitted, error) {
	return p.Client.Submit(p.T.Context(), &api.Submit{
		Form: api.FormSbatch, File: "job.sh", Text: "#!/bin/sh\n" + script + "\n", Dir: p.Dir,
		Args: append([]string{"--output=/dev/null"}, args...), Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.Dir},
	})
}

// Change changes a job: verb is one of api.Verb…; f may fill in the rest.
func (p *Plane) Change(verb, job string, f func(*api.Change)) {
	p.T.Helper()
	ch := &api.Change{Verb: verb, Select: api.Select{IDs: []string{job}}}
	if f != nil {
		f(ch)
	}
	done, err := p.Client.Change(p.T.Context(), ch)
	p.failOn(err)
	if len(done.Errors) > 0 || done.Changed == 0 {
		p.T.Fatalf("%s of job %s: %+v", verb, job, done)
	}
}

// Get is a job as it is now.
func (p *Plane) Get(job string) *api.Job {
	p.T.Helper()
	j, err := p.Client.Job(p.T.Context(), job)
	p.failOn(err)
	return j
}

// Until waits until something holds of a job.
func (p *Plane) Until(job, what string, is func(*api.Job) bool) (j *api.Job) {
	p.T.Helper()
	p.Await("job "+job+" "+what, func() bool {
		j = p.Get(job)
		return is(j)
	})
	return j
}

// Is is for Until: the job has a state.
func Is(state string) func(*api.Job) bool { return func(j *api.Job) bool { return j.State == state } }

// Ends waits until a job has ended, and expects its final state.
func (p *Plane) Ends(job, state string) *api.Job {
	p.T.Helper()
	ctx, cancel := context.WithTimeout(p.T.Context(), patience)
	defer cancel()
	j, err := p.Client.Wait(ctx, job)
	if err != nil {
		p.T.Fatalf("job %s does not end: %v\n%s", job, err, p.describeState())
	}
	if j.State != state {
		p.T.Fatalf("job %s is %s %s (%s), not %s\n%s", job, j.State, j.Exit, j.Message, state, p.describeState())
	}
	return j
}

// Node is a node as it is now.
func (p *Plane) Node(name string) *api.Node {
	p.T.Helper()
	n, err := p.Client.Node(p.T.Context(), name)
	p.failOn(err)
	return n
}

// Names are the names of the nodes, in order.
func (p *Plane) Names() (names []string) {
	p.T.Helper()
	all, err := p.Nodes(p.T.Context())
	p.failOn(err)
	for _, n := range all.Nodes {
		names = append(names, n.Name)
	}
	return names
}

// Write writes a file of the test's folder, whole or not at all, and returns its name.
func (p *Plane) Write(name, text string) string {
	p.T.Helper()
	path := filepath.Join(p.Dir, name)
	p.failOn(os.WriteFile(path+".new", []byte(text), 0o644)) //nolint:gosec // for jobs
	p.failOn(os.Rename(path+".new", path))
	return path
}

// Await waits until something holds. It is looked at again and again, since not
// everything that tests wait for is an event: files, processes, control groups.
func (p *Plane) Await(what string, is func() bool) {
	p.T.Helper()
	const again = 10 * time.Millisecond
	for until := time.Now().Add(patience); !is(); time.Sleep(again) {
		if time.Now().After(until) {
			p.T.Fatalf("in vain: %s\n%s", what, p.describeState())
		}
	}
}

// Settle lets everything that is on its way inside of the control plane arrive: a job
// that needs nothing is submitted, started and ended after it.
func (p *Plane) Settle(args ...string) {
	p.T.Helper()
	p.Ends(p.Submit("exit 0", append([]string{"--mem=1M"}, args...)...), "COMPLETED")
}

// describeState is what server and jobs look like, for a test that failed.
func (p *Plane) describeState() string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var text strings.Builder
	page, err := p.JobsPage(ctx, client.Query{Select: api.Select{States: []string{"all"}}, Limit: 50})
	if err != nil {
		return err.Error() + "\n" + p.serverLog()
	}
	for _, j := range page.Jobs {
		fmt.Fprintf(&text, "%s %s %v attempt %d, %+v %s\n", j.Name, j.State, j.Flags, j.Attempt, j.Claims, j.Message)
	}
	return text.String() + p.serverLog()
}

// Diary is a file to which jobs append lines: their own evidence.
type Diary struct {
	p    *Plane
	Path string
}

// Diary returns a diary of a name.
func (p *Plane) Diary(name string) *Diary {
	p.T.Helper()
	d := &Diary{p, filepath.Join(p.Dir, name)}
	p.failOn(os.WriteFile(d.Path, nil, 0o666))
	p.failOn(os.Chmod(d.Path, 0o666)) // whatever the umask is
	return d
}

// Note is the shell command that appends a line to the diary.
func (d *Diary) Note(text string) string { return `echo "` + text + `" >> ` + d.Path }

// Lines are the whole lines that stand in it.
func (d *Diary) Lines() []string {
	d.p.T.Helper()
	b, err := os.ReadFile(d.Path)
	d.p.failOn(err)
	lines := strings.Split(string(b), "\n")
	return lines[:len(lines)-1]
}

// Await waits until the diary has n lines, and returns them.
func (d *Diary) Await(n int) []string {
	d.p.T.Helper()
	d.p.Await("evidence in "+filepath.Base(d.Path), func() bool { return len(d.Lines()) >= n })
	return d.Lines()
}

// Expect fails the test unless exactly these lines stand in it.
func (d *Diary) Expect(want ...string) {
	d.p.T.Helper()
	if got := d.Lines(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		d.p.T.Fatalf("%s says\n  %s\nnot\n  %s", filepath.Base(d.Path), strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// Gate is a pipe at which jobs wait.
type Gate struct {
	p    *Plane
	Wait string // the shell command that waits
	file *os.File
}

// Gate returns a gate that is closed. It is opened for good when the test ends.
func (p *Plane) Gate(name string) *Gate {
	p.T.Helper()
	path := filepath.Join(p.Dir, name)
	p.failOn(unix.Mkfifo(path, 0o666))
	p.failOn(os.Chmod(path, 0o666))
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	p.failOn(err)
	p.T.Cleanup(func() { _ = f.Close() })
	return &Gate{p, "read line < " + path, f}
}

// Open lets everybody through who waits, and who comes later.
func (g *Gate) Open() { g.Let(4000) }

// Let lets n through.
func (g *Gate) Let(n int) {
	g.p.T.Helper()
	_, err := g.file.WriteString(strings.Repeat("go\n", n))
	g.p.failOn(err)
}

// Events are the events after a number up to now.
func (p *Plane) Events(after uint64) (all []api.Event) {
	p.T.Helper()
	info, err := p.Info(p.T.Context())
	p.failOn(err)
	if info.Change <= after {
		return nil
	}
	ctx, cancel := context.WithTimeout(p.T.Context(), patience)
	defer cancel()
	enough := errors.New("enough")
	err = p.Watch(ctx, client.WatchOptions{After: after}, func(e api.Event) error {
		all = append(all, e)
		if e.Seq >= info.Change {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		p.T.Fatal(err)
	}
	return all
}

// Program writes a shell script that the server can be configured with, and returns its
// name.
func (p *Plane) Program(name, script string) string {
	p.T.Helper()
	path := filepath.Join(p.Dir, name)
	p.failOn(os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755)) //nolint:gosec // a program
	return path
}
