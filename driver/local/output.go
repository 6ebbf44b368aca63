package local

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/agent/asuser"
	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/logfile"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/kit"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

var _ engine.Logger = (*Engine)(nil)

// OpenLog opens an output file as a job's owner; see engine.Logger.
func (e *Engine) OpenLog(ctx context.Context, owner job.Owner, file string) (io.ReadCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !filepath.IsAbs(file) {
		return nil, fault.New(fault.Invalid, "%q is no absolute file name", file)
	}
	who, err := e.users.identityOf(owner)
	if err != nil {
		return nil, err
	}
	f, err := logfile.Open(file, func(name string) (f *os.File, err error) {
		open := func() (err error) {
			f, err = asuser.OpenRegular(name)
			return err
		}
		if who == nil {
			err = open()
			return f, err
		}
		err = asuser.Do(asuser.User{UID: who.UID, GID: who.GID, Groups: who.Groups}, open)
		return f, err
	})
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault.New(fault.NotFound, "%w", err).Advise("the file was removed or moved")
	case errors.Is(err, fs.ErrPermission):
		return nil, fault.New(fault.Permission, "user %s: %w", owner.User, err)
	}
	return nil, err
}

// Purge removes the copies of ranks' output of a forgotten attempt.
func (e *Engine) Purge(ctx context.Context, ref engine.Ref) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e.mu.Lock()
	known := e.gangs[ref] != nil
	e.mu.Unlock()
	if known {
		return fault.New(fault.Conflict, "attempt %s is not forgotten", ref)
	}
	return os.RemoveAll(attempt.RanksOf(e.cfg.Root, ref))
}

// discardOutput removes the copies of ranks' output that nothing was added to for some time,
// now and every hour: forgotten attempts have nobody else who would.
func (e *Engine) discardOutput(keep time.Duration) {
	again := time.NewTicker(time.Hour)
	defer again.Stop()
	for {
		if err := e.discardOnce(time.Now().Add(-keep)); err != nil {
			e.cfg.Log.Warn("remove old copies of ranks' output", "error", err)
		}
		select {
		case <-again.C:
		case <-e.ctx.Done():
			return
		}
	}
}

func (e *Engine) discardOnce(before time.Time) error {
	ranks := filepath.Dir(attempt.RanksOf(e.cfg.Root, engine.Ref{}))
	found, err := os.ReadDir(ranks)
	if err != nil {
		return err
	}
	var errs []error
	for _, d := range found {
		ref, err := attempt.ParseRef(d.Name())
		if err != nil {
			continue
		}
		if newest, err := newestIn(filepath.Join(ranks, d.Name())); err != nil || newest.After(before) {
			errs = append(errs, err)
			continue
		}
		if err := e.Purge(e.ctx, ref); fault.KindOf(err) != fault.Conflict { // it lives
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// newestIn is when something in a directory was last written.
func newestIn(dir string) (newest time.Time, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.ModTime().After(newest) {
			newest = info.ModTime()
		}
		return err
	})
	return newest, err
}

// What is read of the output of a job that failed: the last bytes of so many files, if that takes
// no longer than a file system needs that answers.
const (
	deviceErrorTail  = 32 << 10
	deviceErrorFiles = 4
	deviceErrorWait  = 2 * time.Second
)

// blameDevice looks in the output of an attempt that had devices and failed for a line that says
// that one of them is broken. It looks once.
func (g *gang) blameDevice(r *engine.Report) {
	hasDevices := slices.ContainsFunc(g.launch.Claims, func(c fleet.Claim) bool { return len(c.Devices) > 0 })
	if r.Cause != engine.Exited || r.Exit.OK() || !hasDevices {
		return
	}
	if !g.searched {
		g.searched = true
		found := make(chan string, 1) // its reader may have gone
		go func() { found <- g.e.findDeviceError(g, r.Files) }()
		late := time.NewTimer(deviceErrorWait)
		defer late.Stop()
		select {
		case g.deviceError = <-found:
		case <-late.C:
			g.e.cfg.Log.Warn("the output of a failed job does not let itself be read", "attempt", r.Ref)
		}
	}
	if r.DeviceError = g.deviceError; r.DeviceError != "" && r.Message == "" {
		r.Message = r.DeviceError
	}
}

// findDeviceError reads the ends of output files as the job's owner.
func (e *Engine) findDeviceError(g *gang, files []string) string {
	for _, name := range files[:min(len(files), deviceErrorFiles)] {
		f, err := e.OpenLog(context.Background(), g.launch.Job.Spec.Owner, name)
		if err != nil {
			continue
		}
		text := readTail(f, deviceErrorTail)
		_ = f.Close()
		if line := kit.DeviceError(text); line != "" {
			return line
		}
	}
	return ""
}

// readTail returns the last bytes of a file.
func readTail(f io.Reader, most int64) string {
	if s, ok := f.(io.Seeker); ok {
		if end, err := s.Seek(0, io.SeekEnd); err == nil {
			if _, err := s.Seek(max(0, end-most), io.SeekStart); err != nil {
				return ""
			}
		}
	}
	b, _ := io.ReadAll(io.LimitReader(f, most))
	return string(b)
}
