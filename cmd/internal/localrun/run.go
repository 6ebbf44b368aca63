// Package localrun is what `cox run` does: a control plane inside one process, a room
// of virtual nodes on this machine, jobs shown live and summed up at their end.
//
// The path is the production path: the same control loop, journal and engine that
// a server has. Only the state directory may be a temporary one.
package localrun

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/auth/fileperm"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/intake"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/store/sqlite"
)

// Options are everything that a run needs from outside.
type Options struct {
	Requests []*intake.Request
	Shape    Shape
	StateDir string // "": a temporary one, removed at the end
	Raw      bool   // output lines without labels
	Quiet    bool   // nothing but the jobs' output and errors
	Strict   bool   // refuse options that have no effect here, in place of a note
	Grace    time.Duration
	Out, Err io.Writer
	Terminal bool // Err is a terminal
	Width    int  // of the terminal
	Signals  <-chan os.Signal
	Log      *slog.Logger
	Who      string // the user's name

	// OpenEngine starts the engine over a room, with its files in a directory.
	OpenEngine func(ctx context.Context, dir string, room Room, temporary bool) (engine.Engine, error)
	Machine    Machine
}

// Run runs the jobs to their end and returns the exit code of cox run: that of the
// job, the largest of several. An error means that it could not run them.
func Run(ctx context.Context, opt Options) (code int, err error) {
	dir, temporary, err := stateDir(opt.StateDir)
	if err != nil {
		return 0, err
	}
	if temporary {
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	unlock, err := sqlite.Lock(dir, "cox run")
	if err != nil {
		return 0, err
	}
	defer unlock()
	s := &session{opt: &opt, screen: newScreen(&opt)}
	if err := s.openSession(ctx, dir, temporary); err != nil {
		return 0, errors.Join(err, s.close())
	}
	code, err = s.runJobs(ctx)
	return code, errors.Join(err, s.close())
}

func newScreen(opt *Options) *screen {
	s := &screen{labels: len("v1.0"), out: bufio.NewWriterSize(opt.Out, 64<<10), err: opt.Err, raw: opt.Raw, live: opt.Terminal && !opt.Quiet, width: opt.Width}
	if opt.Quiet {
		s.err = io.Discard
	}
	return s
}

// session is one run with its parts open.
type session struct {
	opt     *Options
	screen  *screen
	store   *sqlite.Store
	engine  engine.Engine
	control *control.Control
	room    Room
	info    engine.Info
	dir     string // the state directory
	gone    bool   // it is removed at the end
}

func (s *session) openSession(ctx context.Context, dir string, temporary bool) error {
	var specs []*job.Spec
	for _, r := range s.opt.Requests {
		specs = append(specs, r.Spec)
	}
	s.dir, s.gone = dir, temporary
	var err error
	if s.room, err = BuildRoom(s.opt.Machine, s.opt.Shape, specs); err != nil {
		return err
	}
	if !temporary {
		if err := keepRoom(dir, &s.room); err != nil {
			return err
		}
	}
	if s.store, err = sqlite.Open(dir); err != nil {
		return err
	}
	if s.engine, err = s.opt.OpenEngine(ctx, filepath.Join(dir, "engine"), s.room, temporary); err != nil {
		return err
	}
	if s.info, err = s.engine.Info(ctx); err != nil {
		return err
	}
	s.control, err = control.Open(ctx, control.Config{
		Store: s.store, Pools: []pools.Pool{{Pool: fleet.Pool{Name: "local", Engine: s.info.Name}, Engine: s.engine, Elastic: s.info.Abilities.Elastic}},
		Log: s.opt.Log, Who: fmt.Sprintf("cox run, process %d", os.Getpid()), Grace: s.opt.Grace, Keep: -1,
		Secret: secretsOf(s.opt.Requests),
	})
	return err
}

func (s *session) close() error {
	var errs []error
	if s.control != nil {
		errs = append(errs, s.control.Close())
	}
	if s.engine != nil {
		errs = append(errs, s.engine.Close())
	}
	if s.store != nil {
		errs = append(errs, s.store.Close())
	}
	return errors.Join(errs...)
}

func (s *session) runJobs(ctx context.Context) (int, error) {
	f := &follower{opt: s.opt, screen: s.screen, jobs: map[job.ID]*followed{}}
	for _, r := range s.opt.Requests {
		if err := s.submitRequest(ctx, f, r); err != nil {
			return 0, errors.Join(err, s.abandonJobs(f))
		}
	}
	views, from, err := s.control.Jobs(ctx)
	if err != nil {
		return 0, errors.Join(err, s.abandonJobs(f))
	}
	f.many = len(f.order) > 1
	for _, v := range views { // jobs of an earlier run in the same state directory are followed too
		if f.jobs[v.Job.ID] == nil && !v.Job.State.Final() {
			f.add(v.Job.ID)
		}
		f.noteChange(v)
	}
	f.many = len(f.order) > 1
	f.unread = func() { s.cancelJobs(ctx, f.order, -1) }
	ids := slices.Clone(f.order)
	stop := handleSignals(ctx, s.opt, func(ctx context.Context, grace time.Duration) { s.cancelJobs(ctx, ids, grace) })
	defer stop()
	if err := f.followChanges(ctx, controlFeed(s.control, from)); err != nil {
		return 0, errors.Join(err, s.abandonJobs(f))
	}
	s.screen.clearStatus()
	return f.summarizeJobs(s.lastingFiles), nil
}

// summarizeJobs says how the jobs ended and returns the exit code. lasting says which of their files
// stay.
func (f *follower) summarizeJobs(lasting func(files []string) []string) (code int) {
	var views []*state.View
	for _, id := range f.order {
		v := &f.jobs[id].view
		views = append(views, v)
		code = max(code, ExitCode(&v.Job))
		if len(f.order) <= manyJobs || v.Job.State != job.Completed {
			printSummary(f.screen, v, lasting(v.Report.Files), f.jobs[id].lastWords)
		}
	}
	if len(views) > manyJobs {
		f.screen.printNote("done     %s", tallyStates(views))
	}
	return code
}

// lastingFiles leaves out the files that are removed with the state directory.
func (s *session) lastingFiles(files []string) []string {
	return slices.DeleteFunc(slices.Clone(files), func(f string) bool {
		return s.gone && strings.HasPrefix(f, s.dir+string(filepath.Separator))
	})
}

// noteUnused notes an option that has no effect here, and refuses it where Strict is set.
func (s *session) noteUnused(format, value string) error {
	if s.opt.Strict {
		return fault.New(fault.Invalid, format, value).Advise("take the option out, or leave --strict out to be warned alone")
	}
	s.screen.printNote("  ! "+format, value)
	return nil
}

// submitRequest accepts one request and says what was understood.
func (s *session) submitRequest(ctx context.Context, f *follower, r *intake.Request) error {
	spec := r.Spec
	s.screen.printNote("%s", jobHeadline(spec))
	for _, w := range r.Warnings {
		s.screen.printNote("  ! %s", w)
	}
	if name := spec.Reservation; name != "" {
		if err := s.noteUnused("--reservation=%s has no effect here: cox run has no reservations, the job is placed as any other", name); err != nil {
			return err
		}
		spec.Reservation = ""
	}
	if unknown := spec.ResolveLevels(func(string) (int, bool) { return 0, false }); unknown != "" {
		return fault.New(fault.Invalid, "within: %s: the virtual nodes of cox run stand in no topology", unknown).Advise("leave it out here; cox submit reads it where the site has such a level")
	}
	if spec.Licenses != "" {
		if err := s.noteUnused("--licenses=%s has no effect here: cox run does not count licences", spec.Licenses); err != nil {
			return err
		}
		spec.Licenses = ""
	}
	if len(f.order) == 0 {
		s.screen.printNote("engine   %s: %s; no other pool is configured", s.info.Name, s.roomText())
		for _, n := range append(s.room.Notes, s.info.Notes...) {
			s.screen.printNote("  · %s", n)
		}
	}
	if spec.Program.Kind == job.Direct && spec.Output.Stdout == "" {
		spec.Output.Stdout = filepath.Join(s.dir, "output-%j") // a command's output is shown; it leaves no file behind
	}
	here, by := intake.Site{Plane: s.control}, s.localActor()
	me := auth.Identity{Name: by.Name, UID: by.UID, GID: uint32(os.Getgid()), Admin: true}
	if err := here.Admit(ctx, me, r, intake.Wish{Provenance: spec.Provenance}); err != nil {
		return err
	}
	accepted, err := here.Submit(ctx, by, r)
	if err != nil {
		return explainRefusal(spec, s.opt.Shape, err)
	}
	for i := range max(accepted.Tasks, 1) {
		f.add(accepted.ID + job.ID(i))
	}
	return nil
}

func (f *follower) add(id job.ID) {
	f.jobs[id] = &followed{ranks: map[string]*tail{}, who: map[string]source{}, attr: newAttribution()}
	f.order = append(f.order, id)
}

// explainRefusal says what to do about a job that does not fit into the room.
func explainRefusal(spec *job.Spec, shape Shape, err error) error {
	var r *control.RefusedError
	if !errors.As(err, &r) {
		return err
	}
	e := fault.New(fault.Invalid, "%s does not fit into this machine room: %w", sourceName(spec), err)
	if shape.Nodes > 0 || shape.GPUsPerNode >= 0 {
		return e.Advise("leave out --virtual-nodes and --virtual-gpus: then there are as many as the job asks for")
	}
	return e
}

func (s *session) roomText() string {
	n := len(s.room.Nodes)
	devices := 0
	for _, node := range s.room.Nodes {
		devices += len(node.Devices)
	}
	text := plural(n, "virtual node") + " on this machine"
	switch {
	case devices == 0:
	case s.room.Declared == devices:
		text += fmt.Sprintf(", %s", plural(devices, "declared device"))
	default:
		text += fmt.Sprintf(", %s", plural(devices, "GPU"))
	}
	if s.opt.Shape.Nodes > 0 {
		return text + " (as given)"
	}
	return text + " (as asked for)"
}

// abandonJobs ends what was submitted when the run itself cannot go on.
func (s *session) abandonJobs(f *follower) error {
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	if _, err := s.control.Change(ctx, s.localActor(), f.order, control.Cancel{}); err != nil {
		return err
	}
	err := f.followChanges(ctx, controlFeed(s.control, 0))
	if err != nil {
		return fmt.Errorf("work may be left behind: %w", err)
	}
	return nil
}

// handleSignals cancels the jobs at the first signal and kills them at the second.
func handleSignals(ctx context.Context, opt *Options, cancelJobs func(ctx context.Context, grace time.Duration)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; ; n++ {
			var sig os.Signal
			select {
			case sig = <-opt.Signals:
			case <-ctx.Done():
				return
			}
			grace := time.Duration(-1)
			text := fmt.Sprintf("\n%s: cancelling; once more kills\n", signalName(sig))
			if n > 0 {
				grace, text = 0, "\nkilling\n"
			}
			fmt.Fprint(opt.Err, text)
			cancelJobs(ctx, grace)
		}
	}()
	return func() { cancel(); <-done }
}

// cancelJobs asks for the end of jobs and says which cannot be cancelled.
func (s *session) cancelJobs(ctx context.Context, ids []job.ID, grace time.Duration) {
	errs, err := s.control.Change(ctx, s.localActor(), ids, control.Cancel{Grace: grace})
	if err != nil {
		fmt.Fprintf(s.opt.Err, "cox: the jobs cannot be cancelled: %v\n", err)
	}
	for i, err := range errs {
		if err != nil {
			fmt.Fprintf(s.opt.Err, "cox: job %d cannot be cancelled: %v\n", ids[i], err)
		}
	}
}

// localActor is who runs this.
func (s *session) localActor() job.Actor {
	return job.Actor{Name: s.opt.Who, UID: uint32(os.Getuid()), From: "cox run"}
}

// stateDir makes the state directory, a temporary one if none is named.
func stateDir(name string) (dir string, temporary bool, err error) {
	if name == "" {
		dir, err = os.MkdirTemp("", "cox-")
		if err != nil {
			return "", false, fault.New(fault.Exhausted, "make a temporary state directory: %w", err).
				Advise("set TMPDIR to a folder with room, or give --state-dir")
		}
		return dir, true, nil
	}
	if dir, err = filepath.Abs(name); err != nil {
		return "", false, err
	}
	if err = os.MkdirAll(dir, 0o700); err != nil {
		return "", false, fault.New(fault.Permission, "state directory: %w", err).Advise("give a --state-dir that you may write to")
	}
	if err = fileperm.Folder(dir); err != nil {
		return "", false, fault.New(fault.KindOf(err), "state directory: %w", err).Advise("%s", fault.Remedy(err))
	}
	return dir, false, nil
}
