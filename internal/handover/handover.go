// Package handover hands the listening socket of a process over to the process that replaces it, so
// that no connection is refused meanwhile. The older process offers its listener on a unix socket in a
// folder that only its user can enter. The newer one asks for it, gets the same socket once more with a
// text that the older one gives along, and says when it is ready; then the older one lets go. A newer
// process that ends before it was ready changes nothing.
package handover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// socketName is the socket in the folder.
const socketName = "handover.sock"

// Words of the talk.
const (
	wordReady = 'r' // of the newer process
	wordYours = 'y' // of the older one, when it has let go
)

// talkTime is the longest that one side waits for the other's bytes; readyTime that the older one waits
// until the newer one is ready.
const (
	talkTime  = 10 * time.Second
	readyTime = time.Minute
)

// acceptPause is the pause after a connection that could not be taken.
const acceptPause = 100 * time.Millisecond

// Offer is what the older process offers.
type Offer struct {
	Dir      string
	Listener net.Listener       // of the kind that has File, as *net.TCPListener
	State    func() any         // given along as JSON
	LetGo    func()             // called once, when the newer process is ready: it has what is in Dir from then on
	Failed   func(reason error) // a talk that failed; may be nil
}

// Serve answers those who ask, until ctx ends or somebody has taken over.
func (o *Offer) Serve(ctx context.Context) error {
	name := filepath.Join(o.Dir, socketName)
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return err
	}
	l.SetUnlinkOnClose(false) // the next one may have made its own meanwhile
	ctx, taken := context.WithCancel(ctx)
	defer taken()
	context.AfterFunc(ctx, func() { _ = l.Close() })
	var once sync.Once
	var talks sync.WaitGroup
	defer talks.Wait()
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(acceptPause): // too many open files, say
			}
			continue
		}
		talks.Go(func() {
			defer c.Close()
			stop := context.AfterFunc(ctx, func() { _ = c.Close() })
			defer stop()
			ready, err := o.tellOffer(c)
			if err != nil && o.Failed != nil && ctx.Err() == nil {
				o.Failed(err)
			}
			if !ready || !stop() {
				return
			}
			once.Do(func() {
				o.LetGo()
				taken()
				_ = l.Close()                     // before the word: the other makes a socket of its own
				_, _ = c.Write([]byte{wordYours}) // one that has gone is started again
			})
		})
	}
}

// tellOffer sends the listener and the state, and waits for the word that the other is ready; false:
// it only wanted to know.
func (o *Offer) tellOffer(c *net.UnixConn) (ready bool, err error) {
	f, err := o.Listener.(interface{ File() (*os.File, error) }).File()
	if err != nil {
		return false, err
	}
	defer f.Close()
	text, err := json.Marshal(o.State())
	if err != nil {
		return false, err
	}
	if err := c.SetDeadline(time.Now().Add(talkTime)); err != nil {
		return false, err
	}
	if _, _, err := c.WriteMsgUnix([]byte{'\n'}, syscall.UnixRights(int(f.Fd())), nil); err != nil {
		return false, nil //nolint:nilerr // it has gone
	}
	if _, err := c.Write(append(text, '\n')); err != nil {
		return false, nil //nolint:nilerr // one that wanted the listener alone
	}
	if err := c.SetDeadline(time.Now().Add(readyTime)); err != nil {
		return false, err
	}
	var word [1]byte
	if _, err := io.ReadFull(c, word[:]); err != nil {
		return false, nil //nolint:nilerr // it has gone
	}
	return word[0] == wordReady, nil
}

// Taking is a talk of the newer process.
type Taking struct {
	Listener net.Listener // the older one's socket once more
	conn     *net.UnixConn
}

// Ask asks the process that offers in a folder. state gets what it gives along; nil: that is not read.
// The caller closes the Taking; its listener is the caller's.
func Ask(dir string, state any) (*Taking, error) {
	d := net.Dialer{Timeout: talkTime}
	conn, err := d.Dial("unix", filepath.Join(dir, socketName))
	if err != nil {
		return nil, err
	}
	t := &Taking{conn: conn.(*net.UnixConn)}
	if err := errors.Join(t.conn.SetDeadline(time.Now().Add(talkTime)), t.receiveOffer(state)); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// receiveOffer reads the listener and the state.
func (t *Taking) receiveOffer(state any) error {
	var first [1]byte
	rights := make([]byte, syscall.CmsgSpace(4))
	n, nr, _, _, err := t.conn.ReadMsgUnix(first[:], rights)
	if err != nil || n != 1 {
		return fmt.Errorf("no listener came: %w", errors.Join(err, io.ErrUnexpectedEOF))
	}
	messages, err := syscall.ParseSocketControlMessage(rights[:nr])
	if err != nil || len(messages) != 1 {
		return fmt.Errorf("no listener came: %w", errors.Join(err, io.ErrUnexpectedEOF))
	}
	fds, err := syscall.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return fmt.Errorf("no listener came: %w", errors.Join(err, io.ErrUnexpectedEOF))
	}
	f := os.NewFile(uintptr(fds[0]), "listener") //nolint:gosec // a file descriptor
	defer f.Close()
	if t.Listener, err = net.FileListener(f); err != nil || state == nil {
		return err
	}
	if err := json.NewDecoder(t.conn).Decode(state); err != nil {
		return errors.Join(err, t.Listener.Close())
	}
	return nil
}

// Ready says that this process is ready, and returns when the older one has let go of its folder.
func (t *Taking) Ready() error {
	if err := t.conn.SetDeadline(time.Now().Add(talkTime)); err != nil {
		return err
	}
	if _, err := t.conn.Write([]byte{wordReady}); err != nil {
		return err
	}
	var word [1]byte
	if _, err := io.ReadFull(t.conn, word[:]); err != nil || word[0] != wordYours {
		return fmt.Errorf("the older process has not let go: %w", errors.Join(err, io.ErrUnexpectedEOF))
	}
	return nil
}

// Close ends the talk.
func (t *Taking) Close() error { return t.conn.Close() }
