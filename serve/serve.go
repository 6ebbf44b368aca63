package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/coxswain-sched/coxswain/admit"
	"github.com/coxswain-sched/coxswain/config"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/local"
	"github.com/coxswain-sched/coxswain/fault"
	"github.com/coxswain-sched/coxswain/fleet"
	"github.com/coxswain-sched/coxswain/store/sqlite"
)

// Options are what a server needs from outside.
type Options struct {
	Config  config.Config
	Cox     string // binary to start supervisors, srun … from; empty: this process's own
	Version string
	Log     *slog.Logger
	Ready   func(Info) // called once the server answers
}

// Info is what a server says when it is ready.
type Info struct {
	Config *config.Config
	TCP    string // address; empty: none
	Nodes  []fleet.Node
	Notes  []string
	Token  string // file with the administrator's token; empty: none
}

// Run serves until ctx ends or the server cannot go on. Work goes on without it.
func Run(ctx context.Context, opt Options) (err error) {
	cfg := &opt.Config
	if err := os.MkdirAll(cfg.State.Dir, stateMode()); err != nil {
		return fault.New(fault.KindOf(err), "state directory: %w", err).Advise("set state.dir or --state-dir to a folder that you may write to")
	}
	unlock, err := sqlite.Lock(cfg.State.Dir, "cox up")
	if err != nil {
		return err
	}
	defer unlock()
	s := &server{opt: &opt, cfg: cfg}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.open(ctx); err != nil {
		return err
	}
	return s.serve(ctx)
}

// stateMode lets users pass through root's state directory to the socket of their
// own job's supervisor, and see nothing on the way.
func stateMode() os.FileMode {
	if os.Getuid() == 0 {
		return 0o711
	}
	return 0o700
}

// server is a server with its parts open.
type server struct {
	opt     *Options
	cfg     *config.Config
	room    room
	rules   admit.Rules
	store   *sqlite.Store
	engine  engine.Engine
	control *control.Control
}

func (s *server) open(ctx context.Context) error {
	var err error
	if s.room, err = findRoom(ctx, s.cfg, s.cfg.State.Dir, s.opt.Cox, s.opt.Log); err != nil {
		return err
	}
	if s.rules, err = rulesOf(s.cfg, s.room.nodes); err != nil {
		return err
	}
	if s.store, err = sqlite.Open(s.cfg.State.Dir); err != nil {
		return err
	}
	e, err := local.New(local.Config{
		Root: engineDir(s.cfg.State.Dir), Nodes: s.room.nodes, Cox: s.opt.Cox, Naming: s.room.naming,
		NoLimits: s.cfg.Room.NoLimits, Log: s.opt.Log.With("part", "engine"),
	})
	if err != nil {
		return err
	}
	s.engine = e
	s.control, err = control.Open(ctx, control.Config{
		Store: s.store, Engine: e, Pool: fleet.Pool{Name: poolName, Engine: "local"},
		Log: s.opt.Log.With("part", "control"), Who: fmt.Sprintf("cox up, process %d", os.Getpid()),
		Grace: time.Duration(s.cfg.Jobs.Grace),
	})
	return err
}

func (s *server) serve(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (s *server) close() error {
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

// TokenFile is where the first start leaves a token of an administrator.
func TokenFile(stateDir string) string { return filepath.Join(stateDir, "token") }
