package podagent

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/store/upload"
)

// The working directory that comes with a job (Plan.Upload). The driver streams its archive to
// `cox-pod receive` in member 0's pod (Receive), which keeps it whole or not at all; the others
// fetch it from there, over the crew's own connections. A member unpacks it, once, and only then
// starts its supervisor: so the barrier opens when all have it.

// archive is where a member keeps what came.
func (p Place) archive() string { return filepath.Join(p.root(), "upload") }

// Receive takes the archive of the plan from in, in member 0's pod: `cox-pod receive`. It
// returns once member 0 knows that it is there. One that is there already, or was, is not read
// again.
func Receive(at Place, in io.Reader) error {
	plan, err := at.readPlan()
	if err != nil {
		return err
	}
	if plan.Upload == nil {
		return fault.New(fault.Invalid, "nothing comes with attempt %s", plan.Ref)
	}
	if Started(at) == nil {
		return nil
	}
	if _, err := os.Lstat(at.archive()); err != nil {
		if err := plan.keep(at, in); err != nil {
			return err
		}
	}
	var m message
	m.Arrived = true
	_, err = m.send(at)
	return err
}

// keep writes the archive of the plan to its place, whole or not at all.
func (p *Plan) keep(at Place, in io.Reader) error {
	f, err := os.CreateTemp(at.root(), "upload-")
	if err != nil {
		return fault.New(fault.Unavailable, "a place for the working directory: %w", err)
	}
	defer os.Remove(f.Name()) // nothing, once it has its name
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, sum), io.LimitReader(in, p.Upload.Size))
	err = errors.Join(err, f.Close())
	switch {
	case err != nil:
		return fmt.Errorf("the working directory broke off after %d bytes of %d: %w", n, p.Upload.Size, err)
	case n != p.Upload.Size:
		return fault.New(fault.Unavailable, "the working directory broke off after %d bytes of %d", n, p.Upload.Size)
	case hex.EncodeToString(sum.Sum(nil)) != p.Upload.Digest:
		return fault.New(fault.Unavailable, "what came is not the working directory %.12s…", p.Upload.Digest)
	}
	return os.Rename(f.Name(), at.archive())
}

// arrived is told, on member 0, that the archive is there.
func (m *member) arrived() {
	if !m.unpacking && !m.begun {
		m.unpacking = true
		go m.unpack()
	}
}

// unpack makes the files, and has the member begin.
func (m *member) unpack() {
	f, err := os.Open(m.at.archive())
	if err == nil {
		err = errors.Join(upload.Unpack(f, m.plan.Upload.Dir, m.plan.UploadRoom), f.Close())
	}
	if m.index > 0 { // nobody asks for it here
		_ = os.Remove(m.at.archive())
	}
	m.event(func() { m.unpacked(err) })
}

func (m *member) unpacked(err error) {
	if m.own.gone() {
		return
	}
	if err == nil {
		err = m.begin()
	}
	if err != nil {
		m.own.lose(fmt.Sprintf("%s: the working directory %s: %s", m.name, m.plan.Upload.Dir, Message(err)))
	}
}

// fetch gets the archive from member 0, as often as it takes.
func (m *member) fetch() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-m.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := m.fetchOnce(ctx)
		if err == nil {
			m.unpack()
			return
		}
		m.event(func() { m.own.last = err })
		select {
		case <-time.After(wait):
		case <-m.done:
			return
		}
	}
}

func (m *member) fetchOnce(ctx context.Context) error {
	c, err := m.tunnel.dial(ctx, 0, forFiles)
	if err != nil {
		return err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	return m.plan.keep(m.at, quiet{c, m.at.silence()})
}

// hand gives another member the archive, if it is here.
func (m *member) hand(c *tls.Conn) {
	if m.index != 0 {
		return
	}
	f, err := os.Open(m.at.archive())
	if err != nil {
		return // it is asked again
	}
	defer f.Close()
	buf := make([]byte, 256<<10)
	for {
		n, err := f.Read(buf)
		if n > 0 {
			_ = c.SetWriteDeadline(time.Now().Add(m.at.silence()))
			if _, err := c.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			_ = c.CloseWrite()
			return
		}
	}
}

// quit ends a member that has not begun, and so has no supervisor that would.
func (m *member) quit(why string) {
	if !m.begun {
		m.own.lose(why)
	}
}

// lacks says what of the working directory is missing; empty: nothing.
func (m *member) lacks() string {
	switch {
	case m.plan.Upload == nil || m.begun:
		return ""
	case m.unpacking:
		return "the working directory is not unpacked yet"
	}
	return "the working directory has not come from the server"
}

// greeting is what a member says to member 0; ok is false while there is nothing to say.
func (m *member) greeting() (h hello, ok bool) {
	h = hello{Ref: m.plan.Ref, Dir: m.at.Dir}
	if m.own.lost {
		h.Why = m.own.why
	}
	return h, m.begun || m.own.lost
}
