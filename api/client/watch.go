package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// WatchOptions say which events to watch.
type WatchOptions struct {
	// After is the number of the last event that is known: Change of a list or of
	// Info. Events come from the next one on.
	After uint64
	Jobs  []string // only of these; empty: of all
	User  string   // only of this user's jobs

	// Lost is told of every try to connect again that failed; an error that it
	// returns ends the watch. nil: try until ctx ends.
	Lost func(err error) error
}

// errStop marks an error of the watcher's own function.
type errStop struct{ error }

func (e errStop) Unwrap() error { return e.error }

// Watch calls f for every event after a number, in order, each once, until ctx
// ends or f fails, whose error it returns. Where the connection breaks it comes
// back and goes on after the last event. An event of the kind api.KindGap means
// that the journal no longer has what was missed: list anew.
func (c *Client) Watch(ctx context.Context, o WatchOptions, f func(api.Event) error) error {
	for pause := firstPause; ; {
		after := o.After
		err := c.watchOnce(ctx, &o, f)
		var stop errStop
		switch {
		case errors.As(err, &stop):
			return stop.error
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && fault.KindOf(err) != fault.Unavailable:
			return err
		case o.After != after:
			pause = firstPause
		}
		if err != nil && o.Lost != nil {
			if err := o.Lost(err); err != nil {
				return err
			}
		}
		if !sleepContext(ctx, pause) {
			return ctx.Err()
		}
		pause = min(2*pause, lastPause)
	}
}

// silence is how long a watch may be quiet before the connection counts as dead;
// the server sends a heartbeat every 15 s.
const silence = 50 * time.Second

func (c *Client) watchOnce(ctx context.Context, o *WatchOptions, f func(api.Event) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	v := url.Values{"after": {strconv.FormatUint(o.After, 10)}}
	if len(o.Jobs) > 0 {
		v.Set("jobs", strings.Join(o.Jobs, ","))
	}
	if o.User != "" {
		v.Set("user", o.User)
	}
	req, err := c.apiRequest(ctx, http.MethodGet, api.Prefix+"/watch", v, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "text/event-stream")
	quiet := time.AfterFunc(silence, cancel)
	defer quiet.Stop()
	resp, err := c.sendRequest(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return readEvents(resp.Body, func() { quiet.Reset(silence) }, func(kind string, id uint64, data []byte) error {
		if data == nil { // how far the server is; what was left out does not match the options
			o.After = max(o.After, id)
			return nil
		}
		var ev api.Event
		if err := json.Unmarshal(data, &ev); err != nil {
			return errStop{fault.New(fault.Unsupported, "event %d is not understood: %w", id, err)}
		}
		if kind == api.KindGap {
			ev = api.Event{Seq: id, Kind: api.KindGap}
		}
		if kind != api.KindGap && ev.Seq <= o.After {
			return nil
		}
		if err := f(ev); err != nil {
			return errStop{err}
		}
		o.After = id
		return nil
	})
}

// readEvents reads a stream of server-sent events until it ends. alive is called
// for every line, a comment too.
func readEvents(r io.Reader, alive func(), f func(kind string, id uint64, data []byte) error) error {
	br := bufio.NewReaderSize(r, 32<<10)
	var (
		kind     string
		id       uint64
		numbered bool
		data     []byte
	)
	for {
		line, err := readLine(br)
		if err != nil {
			return fault.New(fault.Unavailable, "the watch was cut off: %w", err)
		}
		alive()
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "": // the end of an event, or a comment
			if len(line) > 0 || data == nil && !numbered {
				continue
			}
			if err := f(kind, id, data); err != nil {
				return err
			}
			kind, data, numbered = "", nil, false
		case "event":
			kind = string(value)
		case "id":
			if id, err = strconv.ParseUint(string(value), 10, 64); err != nil {
				return fmt.Errorf("event id %q: %w", value, err)
			}
			numbered = true
		case "data":
			data = append(data, value...)
		}
	}
}

// readLine reads a line of up to 1 MiB without its end.
func readLine(br *bufio.Reader) ([]byte, error) {
	line, err := br.ReadSlice('\n')
	for err == bufio.ErrBufferFull && len(line) < 1<<20 {
		var more []byte
		line = bytes.Clone(line)
		more, err = br.ReadSlice('\n')
		line = append(line, more...)
	}
	return bytes.TrimRight(line, "\r\n"), err
}
