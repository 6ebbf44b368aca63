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

// archivePath is where a member keeps what came.
func (p Place) archivePath() string { return filepath.Join(p.rootDir(), "upload") }

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
	if _, err := os.Lstat(at.archivePath()); err != nil {
		if err := plan.storeArchive(at, in); err != nil {
			return err
		}
	}
	var m message
	m.Arrived = true
	_, err = m.sendToLeader(at)
	return err
}

// storeArchive writes the archive of the plan to its place, whole or not at all.
func (p *Plan) storeArchive(at Place, in io.Reader) error {
	f, err := os.CreateTemp(at.rootDir(), "upload-")
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
	return os.Rename(f.Name(), at.archivePath())
}

// archiveArrived is told, on member 0, that the archive is there.
func (m *member) archiveArrived() {
	if !m.unpacking && !m.begun {
		m.unpacking = true
		go m.unpackFiles()
	}
}

// unpackFiles makes the files, and has the member begin.
func (m *member) unpackFiles() {
	f, err := os.Open(m.at.archivePath())
	if err == nil {
		err = errors.Join(upload.Unpack(f, m.plan.Upload.Dir, m.plan.UploadRoom), f.Close())
	}
	if m.index > 0 { // nobody asks for it here
		_ = os.Remove(m.at.archivePath())
	}
	m.runEvent(func() { m.filesUnpacked(err) })
}

func (m *member) filesUnpacked(err error) {
	if m.own.isGone() {
		return
	}
	if m.own.noFiles = err != nil; err == nil {
		err = m.beginAttempt()
	}
	if err != nil {
		m.own.markLost(fmt.Sprintf("%s: the working directory %s: %s", m.name, m.plan.Upload.Dir, Message(err)))
	}
}

// fetchArchive gets the archive from member 0, as often as it takes.
func (m *member) fetchArchive() {
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
			m.unpackFiles()
			return
		}
		m.runEvent(func() { m.own.last = err })
		select {
		case <-time.After(wait):
		case <-m.done:
			return
		}
	}
}

func (m *member) fetchOnce(ctx context.Context) error {
	c, err := m.tunnel.dialMember(ctx, 0, forFiles)
	if err != nil {
		return err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	return m.plan.storeArchive(m.at, silentConn{c, m.at.silenceLimit()})
}

// sendArchive gives another member the archive, if it is here.
func (m *member) sendArchive(c *tls.Conn) {
	if m.index != 0 {
		return
	}
	f, err := os.Open(m.at.archivePath())
	if err != nil {
		return // it is asked again
	}
	defer f.Close()
	buf := make([]byte, 256<<10)
	for {
		n, err := f.Read(buf)
		if n > 0 {
			_ = c.SetWriteDeadline(time.Now().Add(m.at.silenceLimit()))
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

// quitBeforeBegin ends a member that has not begun, and so has no supervisor that would.
func (m *member) quitBeforeBegin(why string) {
	if !m.begun {
		m.own.markLost(why)
	}
}

// missingFiles says what of the working directory is missing; empty: nothing.
func (m *member) missingFiles() string {
	switch {
	case m.plan.Upload == nil || m.begun:
		return ""
	case m.unpacking:
		return "the working directory is not unpacked yet"
	}
	return "the working directory has not come from the server"
}

// helloOf is what a member says to member 0; ok is false while there is nothing to say.
func (m *member) helloOf() (h hello, ok bool) {
	h = hello{Ref: m.plan.Ref, Dir: m.at.Dir}
	if m.own.lost {
		h.Why, h.NoFiles = m.own.why, m.own.noFiles
	}
	return h, m.begun || m.own.lost
}
