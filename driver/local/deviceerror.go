package local

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/kit"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

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
