package srun

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/api/fastclient"
)

// queuedAfter is how long a job may wait before srun says so.
const queuedAfter = 300 * time.Millisecond

// awaitJob copies output until the job has ended, and takes its exit code. Signals and
// the word about waiting have goroutines of their own.
func (s *session) awaitJob() error {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT)
	var helpers sync.WaitGroup
	helpers.Go(func() {
		for sig := range signals {
			s.passSignal(sig.(syscall.Signal))
		}
	})
	over := make(chan struct{})
	helpers.Go(func() {
		select {
		case <-time.After(queuedAfter):
			s.sayQueued()
		case <-over:
		}
	})
	defer func() {
		close(over)
		signal.Stop(signals)
		close(signals)
		helpers.Wait()
	}()
	follows := !s.line.output && s.pipes.dir == ""
	if follows {
		helpers.Go(s.followOutput)
	}
	v, err := s.pollJob()
	if err != nil {
		return err
	}
	s.pipes.drainPipes(s.Raw, s.Err)
	s.sayEnd(v)
	return nil
}

// pollJob asks for the job's end and copies output meanwhile. One poll watches the pipes
// and the connection: no goroutine stands between the tasks and the terminal.
func (s *session) pollJob() (fastclient.Value, error) {
	path := fastclient.Query("/v1/jobs/"+fastclient.Segment(s.id)+"/wait", "timeout", "600")
	for {
		if err := s.client.Send("GET", path, "", nil); err != nil {
			return fastclient.Value{}, err
		}
		if fd, ok := s.client.FD(); ok {
			if err := s.pipes.pumpUntil(fd, s.Raw, s.Err); err != nil {
				return fastclient.Value{}, err
			}
		}
		r, err := s.client.Receive()
		if err != nil {
			return fastclient.Value{}, err
		}
		v, err := r.JSON(path)
		if err != nil || v.Has("state") {
			return v, err
		}
	}
}

// pumpUntil copies what comes through the pipes until there is something to read at fd.
func (p *pipes) pumpUntil(fd int, out, errs io.Writer) error {
	for {
		set := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(p.out), Events: unix.POLLIN}, {Fd: int32(p.err), Events: unix.POLLIN}}
		_, err := unix.Poll(set, -1)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return os.NewSyscallError("poll", err)
		case set[0].Revents != 0:
			return nil
		}
		p.drainPipes(out, errs)
	}
}

// drainPipes copies what stands in the pipes now. What the tasks wrote stands there when
// the job has ended.
func (p *pipes) drainPipes(out, errs io.Writer) {
	if p.buf == nil {
		p.buf = make([]byte, 64<<10)
	}
	for _, s := range []struct {
		fd int
		to io.Writer
	}{{p.out, out}, {p.err, errs}} {
		for s.fd >= 0 {
			n, err := unix.Read(s.fd, p.buf)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if n <= 0 {
				break
			}
			if _, err := s.to.Write(p.buf[:n]); err != nil {
				break // who does not read any more does not end the job
			}
		}
	}
}

// locked is a writer that several goroutines share.
type locked struct {
	mu sync.Mutex
	w  io.Writer
}

// Write writes whole.
func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}
