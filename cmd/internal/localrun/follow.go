package localrun

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// follower shows jobs while they run: what they write, by rank, and what they
// wait for.
type follower struct {
	opt    *Options
	screen *screen
	jobs   map[job.ID]*followed
	order  []job.ID
	many   bool   // more than one job: lines name theirs
	unread func() // called once when nobody reads the output any more

	open     func(j *followed, path string) *tail // an output of a job; nil: a file that is read here
	patience time.Duration                        // how long a line waits for its writer; 0: patience
}

// changeFeed tells how jobs change.
type changeFeed struct {
	next  func(ctx context.Context) ([]state.View, error) // waits for changes
	ended <-chan struct{}                                 // no change comes any more; nil: that is never so
	why   func() error
}

// controlFeed is the changes that a control plane of this process makes after a number.
func controlFeed(c *control.Control, from uint64) changeFeed {
	return changeFeed{
		next: func(ctx context.Context) ([]state.View, error) {
			changes, last, gap, err := c.Next(ctx, from)
			if gap {
				changes, last, err = c.Jobs(ctx)
			}
			from = last
			return changes, err
		},
		ended: c.Done(),
		why:   func() error { return fmt.Errorf("the control plane ended: %w", c.Close()) },
	}
}

// followed is one job as it was last seen.
type followed struct {
	view  state.View
	out   []*tail          // the job's output files
	ranks map[string]*tail // rank logs by path
	who   map[string]source
	attr  *attribution
	queue []waiting // lines read and not shown yet
	said  string    // the last word about waiting
	ready bool      // its start was announced
}

// waiting is a line whose writer may not be known yet: the report that names a
// rank's log can come a moment after the rank's first line.
type waiting struct {
	text  string
	since time.Time
}

// patience is how long a line waits for its writer to become known. After it the
// line is the batch script's own.
const patience = 150 * time.Millisecond

// tick is how often output is looked for.
const tick = 30 * time.Millisecond

// followChanges shows changes until every job has ended.
func (f *follower) followChanges(ctx context.Context, feed changeFeed) error {
	views := make(chan []state.View)
	errs := make(chan error, 1)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		for {
			changes, err := feed.next(ctx)
			if err != nil {
				errs <- err
				return
			}
			select {
			case views <- changes:
			case <-ctx.Done():
				return
			}
		}
	}()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	told := false
	for !f.allEnded() {
		select {
		case vs := <-views:
			for _, v := range vs {
				f.noteChange(v)
			}
		case <-ticker.C:
		case <-feed.ended:
			return feed.why()
		case err := <-errs:
			return err
		}
		f.showOutput()
		if f.screen.broken && !told {
			told = true
			f.unread()
		}
	}
	return nil
}

func (f *follower) allEnded() bool {
	for _, j := range f.jobs {
		if !j.view.Job.State.Final() {
			return false
		}
	}
	return true
}

// noteChange takes in a change of a job that is followed.
func (f *follower) noteChange(v state.View) {
	j := f.jobs[v.Job.ID]
	if j == nil {
		return
	}
	if v.Job.Attempt != j.view.Job.Attempt {
		j.ready = false
	}
	j.view = v
	f.announceJob(j)
	if v.Job.State.Final() {
		f.drainOutput(j, true)
	}
}

// announceJob says once what a job waits for and when its gang has started.
func (f *follower) announceJob(j *followed) {
	v := &j.view
	if len(f.order) > manyJobs {
		return // the lines of so many jobs would drown what they print
	}
	switch {
	case v.Job.State == job.Pending && v.Why.Code != "":
		if said := v.Why.String(); said != j.said {
			j.said = said
			f.screen.printNote("waits    %s%s", f.jobPrefix(j), said)
		}
	case !j.ready && !v.Report.Started.IsZero():
		j.ready = true
		f.screen.printNote("gang     %s%s", f.jobPrefix(j), startedText(v))
	}
}

func startedText(v *state.View) string {
	var names []string
	for _, n := range v.Report.Nodes {
		names = append(names, n.Node)
	}
	after := v.Report.Started.Sub(v.Job.Submitted).Seconds()
	if len(names) == 1 {
		return fmt.Sprintf("1 node ready, %s, started after %.2f s", names[0], max(after, 0))
	}
	return fmt.Sprintf("%d of %d nodes ready on %s, started together after %.2f s", len(names), len(names), compressNames(names), max(after, 0))
}

// jobPrefix names the job in a line where there are several.
func (f *follower) jobPrefix(j *followed) string {
	if !f.many {
		return ""
	}
	return "job " + j.view.Job.Name() + ": "
}

// showOutput prints what the jobs wrote since the last call, and redraws the status.
func (f *follower) showOutput() {
	for _, id := range f.order {
		if j := f.jobs[id]; !j.view.Job.State.Final() && j.view.Job.Attempt > 0 {
			f.drainOutput(j, false)
		}
	}
	f.screen.flush()
	if f.screen.live {
		var lines []string
		for _, id := range f.order {
			lines = append(lines, f.statusLines(f.jobs[id])...)
		}
		f.screen.drawStatus(lines)
	}
}

// drainOutput prints a job's new output lines. The output files are read before the rank
// logs, so that a line's writer is known when the line is printed.
func (f *follower) drainOutput(j *followed, last bool) {
	f.watchFiles(j)
	for f.drainSome(j, last) && last { // to the very end
	}
}

// drainSome prints a bounded part of a job's new output and reports whether there
// was any.
func (f *follower) drainSome(j *followed, last bool) bool {
	var lines []string
	for _, t := range j.out {
		more, err := t.readLines(last)
		if err != nil && !t.bad {
			f.screen.printNote("  ! %s cannot be read: %v", t.path, err)
		}
		t.bad = err != nil
		lines = append(lines, more...)
	}
	for path, t := range j.ranks {
		more, err := t.readLines(last)
		if err != nil {
			continue // the attribution is lost, the output is not
		}
		for _, line := range more {
			j.attr.noteLine(line, j.who[path])
		}
	}
	now := time.Now()
	for _, line := range lines {
		j.queue = append(j.queue, waiting{line, now})
	}
	for len(j.queue) > 0 {
		w := j.queue[0]
		by, ok := j.attr.writerOf(w.text)
		if !ok && !last && now.Sub(w.since) < cmp.Or(f.patience, patience) {
			break
		}
		f.screen.printLine(f.rankLabel(j, by, ok), w.text)
		j.queue = j.queue[1:]
	}
	return len(lines) > 0
}

// watchFiles takes up files that the last report names.
func (f *follower) watchFiles(j *followed) {
	open := f.open
	if open == nil {
		open = func(_ *followed, path string) *tail { return &tail{path: path} }
	}
	for _, path := range j.view.Report.Files {
		known := false
		for _, t := range j.out {
			known = known || t.path == path
		}
		if !known {
			j.out = append(j.out, open(j, path))
		}
	}
	for _, t := range j.view.Report.Tasks {
		if t.Log != "" && t.Step >= 0 && j.ranks[t.Log] == nil {
			j.ranks[t.Log] = open(j, t.Log)
			j.who[t.Log] = source{t.Step, t.Rank, t.Node}
		}
	}
}

// rankLabel is "v2.3" for rank 3 on v2, "v1" for the batch script on v1.
func (f *follower) rankLabel(j *followed, by source, known bool) string {
	text := ""
	if f.many {
		text = j.view.Job.Name() + " "
	}
	if known {
		return fmt.Sprintf("%s%s.%d", text, by.node, by.rank)
	}
	if len(j.view.Claims) > 0 {
		text += j.view.Claims[0].Node
	}
	return text
}

// statusLines is the live picture of one job: a line for each node of its gang.
func (f *follower) statusLines(j *followed) []string {
	v := &j.view
	if v.Job.State != job.Running {
		return nil
	}
	const most = 8
	byNode := map[string]string{}
	running := 0
	for _, t := range v.Report.Tasks {
		if t.Step == engine.BatchStep {
			continue
		}
		mark := "·"
		switch {
		case t.Running:
			mark, running = "▶", running+1
		case t.Exit.OK():
			mark = "✓"
		default:
			mark = "✗"
		}
		byNode[t.Node] += fmt.Sprintf(" %d%s", t.Rank, mark)
	}
	elapsed := 0.0
	if !v.Report.Started.IsZero() {
		elapsed = time.Since(v.Report.Started).Seconds()
	}
	lines := []string{fmt.Sprintf("── %sjob %s %s %.1f s, %s running", "", v.Job.Name(), strings.ToLower(v.Job.State.String()), elapsed, plural(running, "rank"))}
	for i, n := range v.Report.Nodes {
		if i == most {
			lines = append(lines, fmt.Sprintf("   … and %d more nodes", len(v.Report.Nodes)-most))
			break
		}
		lines = append(lines, fmt.Sprintf("   %-6s %-8s%s", n.Node, n.Phase, byNode[n.Node]))
	}
	return lines
}

// screen writes output lines, notes and, on a terminal, a status that stays below
// them and is redrawn.
type screen struct {
	out    *bufio.Writer // of lines; flushed before anything else is written
	err    io.Writer     // of notes and the status
	broken bool          // nobody reads the lines any more
	raw    bool          // lines without labels
	live   bool          // a terminal: the status is shown
	width  int
	drawn  int // lines of the status on the screen
	shown  string
	labels int // widest label so far
}

func (s *screen) printNote(format string, args ...any) {
	s.clearStatus()
	s.flush()
	fmt.Fprintf(s.err, format+"\n", args...)
}

func (s *screen) printLine(label, text string) {
	s.clearStatus()
	if i := strings.LastIndexByte(strings.TrimRight(text, "\r"), '\r'); i >= 0 {
		text = text[i+1:] // a progress bar: its last state
	}
	if s.raw {
		fmt.Fprintln(s.out, text)
		return
	}
	s.labels = max(s.labels, len(label))
	fmt.Fprintf(s.out, " %-*s | %s\n", s.labels, label, text)
}

func (s *screen) drawStatus(lines []string) {
	for i, l := range lines {
		if r := []rune(l); len(r) >= s.width && s.width > 1 {
			lines[i] = string(r[:s.width-1])
		}
	}
	text := strings.Join(lines, "\n")
	if text == s.shown {
		return
	}
	s.clearStatus()
	s.flush()
	if text != "" {
		fmt.Fprintln(s.err, text)
	}
	s.shown, s.drawn = text, len(lines)
}

// flush writes the lines so far out. A reader that is gone (cox run … | head) is
// noted; what comes later is dropped.
func (s *screen) flush() {
	if err := s.out.Flush(); err != nil {
		s.broken = true
	}
}

// clearStatus removes the status from the terminal.
func (s *screen) clearStatus() {
	if s.drawn > 0 {
		fmt.Fprintf(s.err, "\x1b[%dA\x1b[J", s.drawn)
	}
	s.drawn, s.shown = 0, ""
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
