package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// logDir is the directory of the logs that were copied.
type logDir string

// fileOf is the name under which an attempt's output is read: the log of member 0, which is in the
// cluster while it lives and copied below the state directory at its end.
func (d logDir) fileOf(ref engine.Ref) string { return filepath.Join(string(d), ref.String()+".out") }

// fileOfRank is the name under which the output of a pod of a manifest is read.
func (d logDir) fileOfRank(ref engine.Ref, rank int) string {
	if rank == 0 {
		return d.fileOf(ref)
	}
	return filepath.Join(string(d), fmt.Sprintf("%s.%d.out", ref, rank))
}

// refOf is the attempt whose output a file is, and of which of its pods.
func (d logDir) refOf(file string) (ref engine.Ref, rank int, ok bool) {
	if _, err := fmt.Sscanf(filepath.Base(file), "%d.%d.%d.out", &ref.Allocation, &ref.Attempt, &rank); err == nil {
		return ref, rank, rank > 0 && d.fileOfRank(ref, rank) == file
	}
	if _, err := fmt.Sscanf(filepath.Base(file), "%d.%d.out", &ref.Allocation, &ref.Attempt); err != nil {
		return ref, 0, false
	}
	return ref, 0, d.fileOf(ref) == file
}

// keptLogs is how many logs of a manifest's pods are kept.
const keptLogs = 64

// keepLog copies the log of member 0, whose container has ended, to where it is read after that; of a manifest,
// the logs of the first keptLogs pods. What cannot be had is said in the engine's log, and is no reason to keep a node. A copy that is
// there stays: a kubelet may have less later, of a pod that was deleted.
func (e *Engine) keepLog(a *attempt) {
	n := 1
	if a.order.work != nil {
		n = min(len(a.order.Nodes), keptLogs)
	}
	_ = e.calls.forEach(n, func(rank int) error {
		e.keepLogOf(a, rank)
		return nil
	})
}

// lostLogs begin what a kubelet sends in the place of the log of a container that it has removed, or is removing.
var lostLogs = [...]string{"unable to retrieve container logs for ", `failed to try resolving symlinks in path "/var/log/pods/`}

// isLostLog reports whether a log begins so.
func isLostLog(first []byte) bool {
	return slices.ContainsFunc(lostLogs[:], func(l string) bool { return bytes.HasPrefix(first, []byte(l)) })
}

// keepLogOf is keepLog for one pod. Of a manifest a longer copy takes the place of one that was made before
// the pod was told to end.
func (e *Engine) keepLogOf(a *attempt, rank int) {
	e.mu.Lock()
	ran := !a.report.Started.IsZero()
	e.mu.Unlock()
	name := e.logs.fileOfRank(a.ref, rank)
	there := int64(-1)
	if i, err := os.Stat(name); err == nil {
		there = i.Size()
	}
	if !ran || there > 0 && a.order.work == nil {
		return
	}
	err := func() error {
		ctx, cancel := e.calls.callContext()
		defer cancel()
		from, err := e.k.Log(ctx, a.namespace, podName(e, a.ref, rank), a.logContainer(rank), false)
		if err != nil {
			return err
		}
		defer from.Close()
		to, err := os.OpenFile(name+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return err
		}
		first := make([]byte, max(len(lostLogs[0]), len(lostLogs[1])))
		n, err := io.ReadFull(from, first)
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			err = nil
		}
		if err == nil && isLostLog(first[:n]) {
			err = errors.New("the kubelet has the log no more")
		}
		var size int64
		if err == nil {
			size, err = io.Copy(to, io.MultiReader(bytes.NewReader(first[:n]), from))
		}
		if err = errors.Join(err, to.Close()); err != nil || size <= there {
			return errors.Join(err, os.Remove(name+".new"))
		}
		return os.Rename(name+".new", name)
	}()
	if err != nil {
		e.cfg.Log.Warn("kubernetes", "attempt", a.ref.String(), "output", name, "error", err)
	}
}

// OpenLog opens an attempt's output. Whose job it is the caller has checked: the file is the
// engine's own.
func (e *Engine) OpenLog(ctx context.Context, _ job.Owner, file string) (io.ReadCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ref, rank, ok := e.logs.refOf(file)
	if !ok {
		return nil, fault.New(fault.NotFound, "there is no output: nothing of it has begun")
	}
	r := &output{e: e, ref: ref, rank: rank, name: file}
	r.ctx, r.cancel = context.WithCancel(e.ctx)
	if err := r.openCopy(); err != nil {
		r.cancel()
		return nil, err
	}
	return r, nil
}

// output reads an attempt's log, wherever it is at present.
type output struct {
	e      *Engine
	ref    engine.Ref
	rank   int // of the pod
	name   string
	ctx    context.Context //nolint:containedctx // ends with Close
	cancel context.CancelFunc
	from   io.ReadCloser
	at     int64  // bytes that were read
	begin  string // when the first line was printed of the file that was read; empty: nobody knows
}

// openCopy opens the copy, or the container's log, at the place up to which was read.
func (o *output) openCopy() error {
	f, err := os.Open(o.name)
	if err == nil {
		if i, err := f.Stat(); err == nil && i.Size() < o.at { // its kubelet had begun another file, which was not read
			o.at = 0
		}
		if _, err = f.Seek(o.at, io.SeekStart); err != nil {
			return errors.Join(err, f.Close())
		}
		o.from = f
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	o.e.mu.Lock()
	a := o.e.attempts[o.ref]
	alive := a != nil && !a.ended
	container := ""
	if alive && (o.rank == 0 || a.order != nil && o.rank < len(a.order.Nodes)) {
		container = a.logContainer(o.rank)
	}
	o.e.mu.Unlock()
	if container == "" {
		return fault.New(fault.NotFound, "there is no output of attempt %s", o.ref)
	}
	return o.openLiveLog(a.namespace, container)
}

// openLiveLog opens the container's log. Its kubelet keeps a file of it up to a size, and then begins another:
// that one is read from its beginning. One of which less comes than was read, and that is the same, was
// cut on its way: there is nothing for now, and o.from stays nil. Where nobody knows of which file was
// read, as none had begun then, what is shorter is taken for another.
func (o *output) openLiveLog(namespace, container string) error {
	pod := podName(o.e, o.ref, o.rank)
	begins := func() (string, error) { return o.e.k.Begin(o.ctx, namespace, pod, container) }
	var err error
	nameless := o.begin == "" && o.at > 0
	if o.begin == "" {
		if o.begin, err = begins(); err != nil {
			return err
		}
	}
	from, err := o.e.k.Log(o.ctx, namespace, pod, container, false)
	if err != nil {
		return err
	}
	if _, err = io.CopyN(io.Discard, from, o.at); err == nil {
		o.from = from
		return nil
	}
	err = errors.Join(err, from.Close())
	if !errors.Is(err, io.EOF) {
		return err
	}
	now, err := begins()
	if err != nil || now == "" || now == o.begin && !nameless {
		return err
	}
	o.at, o.begin = 0, now
	o.from, err = o.e.k.Log(o.ctx, namespace, pod, container, false)
	return err
}

func (o *output) Read(b []byte) (int, error) {
	if o.from == nil {
		if err := o.openCopy(); err != nil {
			return 0, err
		}
		if o.from == nil {
			return 0, io.EOF
		}
	}
	n, err := o.from.Read(b)
	o.at += int64(n)
	if errors.Is(err, io.EOF) {
		if _, file := o.from.(*os.File); !file { // there may be more the next time
			err = errors.Join(o.from.Close(), io.EOF)
			o.from = nil
			if errors.Is(err, io.EOF) {
				err = io.EOF
			}
		}
	}
	return n, err
}

func (o *output) Close() error {
	o.cancel()
	if o.from == nil {
		return nil
	}
	return o.from.Close()
}

// Purge removes the copy of a forgotten attempt's output.
func (e *Engine) Purge(ctx context.Context, ref engine.Ref) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e.mu.Lock()
	known := e.attempts[ref] != nil
	e.mu.Unlock()
	if known {
		return fault.New(fault.Conflict, "attempt %s is not forgotten", ref)
	}
	files, err := filepath.Glob(filepath.Join(string(e.logs), ref.String()+".*out"))
	for _, name := range files {
		if gone := os.Remove(name); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}
