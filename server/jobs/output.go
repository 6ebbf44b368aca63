package jobs

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/frame"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/server/transport"
)

// Output opens what jobs print, as engine.Logger does: with the rights of the
// owner, and so that a Read at the present end may return more later.
type Output interface {
	OpenLog(ctx context.Context, owner job.Owner, file string) (io.ReadCloser, error)
}

// poolOutput opens what jobs of a pool print; nil: its engine cannot. What the server was
// made with is for the pools of its configuration.
func (s *Service) poolOutput(pool string) Output {
	e := s.cfg.Plane.AddedEngine(pool)
	if e == nil {
		return s.cfg.Output
	}
	if o, ok := e.(Output); ok {
		return o
	}
	return nil
}

// poolExecer runs commands in jobs of a pool; nil: its engine cannot.
func (s *Service) poolExecer(pool string) engine.Execer {
	e := s.cfg.Plane.AddedEngine(pool)
	if e == nil {
		return s.cfg.Exec
	}
	x, _ := e.(engine.Execer)
	return x
}

// namesFilesItself reports whether an engine's jobs have numbers of their own, so that the names of
// their files are known from reports alone.
func namesFilesItself(o Output) bool {
	r, ok := o.(interface{ Renumbers() bool })
	return ok && r.Renumbers()
}

type logInput struct {
	JobPath
	Stream string `query:"stream" enum:"stdout,stderr" default:"stdout"`
	Step   string `query:"step" doc:"number of a step"`
	Rank   string `query:"rank" doc:"number of a task; left out: the job's own files"`
	Follow bool   `query:"follow" doc:"until the job has ended"`
	Tail   int    `query:"tail" minimum:"0" doc:"only so many last lines; 0: all"`
	From   int64  `query:"from" minimum:"0" doc:"byte of the output to begin with, to go on after a connection that broke; not with tail"`
}

func (s *Service) registerOutput() {
	addStreamRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/v1/jobs/{job}/logs", Verb: auth.SeeLogs, ID: "logs", Tag: "jobs", Owned: true, Lasts: true,
		Media: []string{"text/plain"}, Summary: "Output of a job or of one rank",
		About: "As bytes. The header Cox-Log-From says with which byte of the output they begin: less than from, where there is not so much. " +
			"The trailer Cox-Log-End says why it ended: end, job-ended, or an error.",
	}, func(c *call, in *logInput) error { return s.serveLogs(c, in) })
	addStreamRoute(s, transport.Route{
		Method: http.MethodPost, Path: "/v1/jobs/{job}/exec", Verb: auth.Exec, ID: "exec", Tag: "jobs", Owned: true, Lasts: true, Status: http.StatusSwitchingProtocols,
		Summary: "Run a command beside the tasks of a running job",
		About:   "An upgrade of the connection to " + frame.Protocol + "; the header " + frame.Header + " holds api.Exec as JSON in base64. docs/reference/api.md has the frames.",
	}, func(c *call, in *JobPath) error { return s.serveExec(c, in.Job) })
}

func (s *Service) serveLogs(c *call, in *logInput) error {
	v, err := c.findJob(in.Job, auth.SeeLogs)
	if err != nil {
		return err
	}
	if in.From > 0 && in.Tail > 0 {
		return fault.New(fault.Invalid, "from and tail: a log begins at a byte or with its last lines").Advise("leave one of them out")
	}
	q := logQuery{stream: in.Stream}
	for _, n := range []struct {
		name, from string
		to         **int
	}{{"step", in.Step, &q.step}, {"rank", in.Rank, &q.rank}} {
		if n.from == "" {
			continue
		}
		i, err := strconv.Atoi(n.from)
		if err != nil || i < engine.BatchStep {
			return fault.New(fault.Invalid, "%s: %q is no number", n.name, n.from).Advise("ranks count from 0; step -1 is the batch script")
		}
		*n.to = &i
	}
	noOutput := fault.New(fault.Unsupported, "the engine of this job's pool gives no output").Advise("look at the files: cox show %s", in.Job)
	if s.poolOutput(v.Pool) == nil && s.poolOutput(v.Job.Spec.Pool) == nil {
		return noOutput
	}
	ctx, cancel := c.streamContext()
	defer cancel()
	if in.Follow && v.Job.State == job.Pending {
		if v, err = s.untilStarted(ctx, c, in.Job); err != nil {
			return err
		}
	}
	if q.from = s.poolOutput(v.Pool); q.from == nil {
		return noOutput
	}
	r, err := s.openLog(ctx, c, in, q, &v)
	if err != nil {
		return err
	}
	defer r.Close()
	h := c.W.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Trailer", api.LogEnd)
	why, err := s.copyLog(ctx, c, in, r)
	if err != nil {
		why = strings.ReplaceAll(err.Error(), "\n", " ")
	}
	h.Set(api.LogEnd, why)
	return nil
}

// logQuery says which output of a job.
type logQuery struct {
	stream     string // "stdout" or "stderr"
	step, rank *int   // nil: the job's own files
	from       Output
}

// openLog opens a log. Of a job that runs and is followed it waits for the log to
// be there.
func (s *Service) openLog(ctx context.Context, c *call, in *logInput, q logQuery, v *state.View) (io.ReadCloser, error) {
	for {
		file, err := engine.LogFile(v.Report, q.stream, q.step, q.rank)
		if err != nil && q.step == nil && q.rank == nil && v.Job.State != job.Pending && !namesFilesItself(q.from) {
			file, err = outputName(v, q.stream), nil // no report has come of it, or none is kept
		}
		if err == nil {
			r, oerr := q.from.OpenLog(ctx, v.Job.Spec.Owner, file)
			if oerr == nil {
				return r, nil
			}
			err = oerr
		}
		if fault.KindOf(err) != fault.NotFound || !in.Follow || !v.Job.State.Holds() {
			return nil, noOutput(v, q.rank, err)
		}
		sleepContext(ctx, logPoll)
		if ctx.Err() != nil {
			return nil, fault.New(fault.Unavailable, "given up: %w", context.Cause(ctx))
		}
		again, err := c.findJob(in.Job, auth.SeeLogs)
		if err != nil {
			return nil, err
		}
		v = &again
	}
}

func outputName(v *state.View, stream string) string {
	if stream == "stderr" {
		return stderrOf(v)
	}
	return expandPattern(v, v.Job.Spec.Output.Stdout, "")
}

// noOutput says in the words of jobs that there is no log.
func noOutput(v *state.View, rank *int, err error) error {
	if fault.KindOf(err) != fault.NotFound {
		return err
	}
	name := v.Job.Name()
	if v.Job.State == job.Pending {
		return fault.New(fault.NotFound, "job %s waits and has no output yet", name).Advise("cox why %s; cox logs -f %s waits for it", name, name)
	}
	if rank != nil && v.Job.Spec.Elastic() {
		return fault.New(fault.NotFound, "job %s has no output of rank %d by itself: it is kept only of the ranks that an elastic job started with", name, *rank).Advise("cox logs %s has the output of all", name)
	}
	return fault.New(fault.NotFound, "job %s: %w", name, err).Advise("cox show %s lists its tasks and files", name)
}

// untilStarted waits until a job has an attempt, or has ended without.
func (s *Service) untilStarted(ctx context.Context, c *call, name string) (state.View, error) {
	for {
		after := s.hub.lastSeq()
		v, err := c.findJob(name, auth.SeeLogs)
		if err != nil || v.Job.State != job.Pending {
			return v, err
		}
		_, _, wake, ok := s.hub.next(after)
		if !ok {
			continue
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return v, fault.New(fault.Unavailable, "given up: %w", context.Cause(ctx))
		}
	}
}

// logPoll is how often a file that is followed is looked at.
const logPoll = 100 * time.Millisecond

// copyLog sends a log as it grows. A client that does not read is cut off.
func (s *Service) copyLog(ctx context.Context, c *call, in *logInput, r io.Reader) (why string, err error) {
	out := &logWriter{c: c, ctl: http.NewResponseController(c.W.ResponseWriter), stall: s.cfg.Stall}
	last, from, err := beginLog(r, in)
	if err != nil {
		return "", err
	}
	c.W.Header().Set(api.LogFrom, strconv.FormatInt(from, 10))
	if len(last) > 0 {
		if _, err := out.Write(last); err != nil {
			return "", err
		}
	}
	buf := make([]byte, 32<<10)
	for {
		ended := !in.Follow
		if in.Follow {
			v, err := c.findJob(in.Job, auth.SeeLogs)
			if err != nil {
				return "", err
			}
			ended = v.Job.State.Final() || v.Job.State == job.Pending
		}
		n, err := io.CopyBuffer(out, onlyReader{r}, buf)
		if err != nil {
			return "", err
		}
		if n > 0 {
			out.flush()
		}
		switch {
		case ended && in.Follow:
			return "job-ended", nil
		case ended:
			return "end", nil
		}
		sleepContext(ctx, logPoll)
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
	}
}

// beginLog goes to where a log is to begin: from is the byte. What it had to read of that is returned.
func beginLog(r io.Reader, in *logInput) (last []byte, from int64, err error) {
	switch {
	case in.Tail > 0:
		return tailLines(r, in.Tail)
	case in.From > 0:
		from, err = skipBytes(r, in.From)
	}
	return nil, from, err
}

type onlyReader struct{ io.Reader }

type logWriter struct {
	c     *call
	ctl   *http.ResponseController
	stall time.Duration
}

func (w *logWriter) Write(b []byte) (int, error) {
	_ = w.ctl.SetWriteDeadline(time.Now().Add(w.stall))
	return w.c.W.Write(b)
}

func (w *logWriter) flush() { _ = w.ctl.Flush() }

func (s *Service) serveExec(c *call, name string) error {
	v, err := c.findJob(name, auth.Exec)
	if err != nil {
		return err
	}
	x := s.poolExecer(v.Pool)
	switch {
	case x == nil:
		return fault.New(fault.Unsupported, "the engine of this job's pool runs no commands inside of jobs")
	case v.Job.State != job.Running:
		return fault.New(fault.Conflict, "job %s does not run: it is %s", v.Job.Name(), v.Job.State).Advise("cox show %s", v.Job.Name())
	case !strings.EqualFold(c.R.Header.Get("Upgrade"), frame.Protocol):
		return transport.WithStatus(http.StatusUpgradeRequired, fault.New(fault.Invalid, "exec needs an upgrade of the connection to %s", frame.Protocol).Advise("cox exec does it"))
	}
	var e api.Exec
	b, err := base64.StdEncoding.DecodeString(c.R.Header.Get(frame.Header))
	if err == nil {
		err = json.Unmarshal(b, &e)
	}
	if err != nil || len(e.Command) == 0 {
		return fault.New(fault.Invalid, "the header %s holds no command", frame.Header).Advise("docs/reference/api.md has its form")
	}
	return s.runExec(c, &v, e, x)
}

// runExec takes the connection over.
func (s *Service) runExec(c *call, v *state.View, e api.Exec, x engine.Execer) error {
	defer s.leases.beginUse(v.Job.ID)()
	s.Log.Info("exec", "job", v.Job.Name(), "user", c.ID.Name, "from", c.ID.From, "command", e.Command[0])
	conn, rw, err := http.NewResponseController(c.W.ResponseWriter).Hijack()
	if err != nil {
		return err
	}
	defer s.ConnStateChanged(conn, http.StateClosed)
	defer conn.Close()
	c.W.Status = http.StatusSwitchingProtocols
	_ = conn.SetDeadline(time.Time{})
	_, err = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+frame.Protocol+"\r\n"+api.VersionHeader+": "+transport.APIVersion+"\r\n\r\n")
	if err != nil {
		return nil
	}
	ctx, cancel := c.WatchSession(context.Background())
	defer cancel()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	in, feed := io.Pipe()
	sizes := make(chan engine.Window, 1)
	go func() { // ends when the connection is closed, at the latest below
		defer cancel()
		defer close(sizes)
		feed.CloseWithError(readFrames(rw, feed, sizes))
	}()
	w := frame.NewWriter(conn)
	ref, rank := v.Where(e.Node, e.Rank)
	code, err := x.Exec(ctx, ref, engine.ExecRequest{
		Command: e.Command, Node: e.Node, Rank: rank, Env: e.Env, TTY: e.TTY, Window: engine.Window(e.Window), Resize: sizes,
		Submitted: func(ctx context.Context) ([]string, error) { return s.submittedEnviron(ctx, v.Job.Spec.Env.Hash) },
		Stdin:     in, Stdout: w.Stream(frame.Stdout), Stderr: w.Stream(frame.Stderr),
	})
	in.Close()
	kind, last := frame.Exit, any(code)
	if err != nil {
		kind, last = frame.Error, transport.ErrorBody(err)
	}
	text, err := json.Marshal(last)
	if err == nil {
		err = w.Write(kind, text)
	}
	if err != nil {
		s.Log.Debug("exec: the client has gone", "job", v.Job.Name(), "error", err)
	}
	return nil
}

// submittedEnviron is the environment that a job was submitted with.
func (s *Service) submittedEnviron(ctx context.Context, hash string) ([]string, error) {
	if hash == "" {
		return nil, nil
	}
	env, err := s.cfg.Plane.Blob(ctx, hash)
	if err != nil {
		return nil, err
	}
	return control.SplitEnv(env), nil
}

// readFrames reads what the client sends until it goes.
func readFrames(r io.Reader, stdin *io.PipeWriter, sizes chan<- engine.Window) error {
	var buf []byte
	for {
		t, payload, grown, err := frame.Read(r, buf)
		if err != nil {
			return err
		}
		buf = grown
		switch t {
		case frame.Stdin:
			if _, err := stdin.Write(payload); err != nil && err != io.ErrClosedPipe {
				return err
			}
		case frame.EOF:
			stdin.Close()
		case frame.Window:
			if rows, cols, ok := frame.GetWindow(payload); ok {
				select {
				case sizes <- engine.Window{Rows: rows, Cols: cols}:
				default: // only the latest matters, and the next comes soon
				}
			}
		}
	}
}
