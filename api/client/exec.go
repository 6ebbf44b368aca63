package client

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/frame"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// ExecStreams are the ends of a command that runs inside of a job. Stdin nil is
// empty; Stdout and Stderr nil discard; on a terminal all output comes on Stdout.
type ExecStreams struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Resize         <-chan api.Window // new sizes of the terminal; nil: none
}

// Exec runs a command beside the tasks of a running job and returns how it ended.
// The end of ctx closes the connection, and the server ends the command. A read
// from Stdin that blocks may outlive the call.
func (c *Client) Exec(ctx context.Context, name string, e api.Exec, s ExecStreams) (job.ExitCode, error) {
	conn, br, err := c.upgradeExec(ctx, name, e)
	if err != nil {
		return job.ExitCode{}, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	w := frame.NewWriter(conn)
	done := make(chan struct{})
	defer close(done)
	go sendInput(w, s.Stdin)
	if s.Resize != nil {
		go sendSizes(w, s.Resize, done)
	}
	code, err := receiveFrames(br, s)
	if ctx.Err() != nil {
		return code, ctx.Err()
	}
	return code, err
}

// upgradeExec sends the request on a connection of its own.
func (c *Client) upgradeExec(ctx context.Context, name string, e api.Exec) (io.ReadWriteCloser, *bufio.Reader, error) {
	b, err := json.Marshal(e)
	if err != nil {
		return nil, nil, err
	}
	req, err := c.apiRequest(ctx, http.MethodPost, jobPath(name, "exec"), nil, nil)
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", frame.Protocol)
	req.Header.Set(frame.Header, base64.StdEncoding.EncodeToString(b))
	resp, err := c.sendRequest(req)
	if err != nil {
		return nil, nil, err
	}
	rw, ok := resp.Body.(io.ReadWriteCloser)
	if resp.StatusCode != http.StatusSwitchingProtocols || !ok {
		resp.Body.Close()
		return nil, nil, fault.New(fault.Unsupported, "the server at %s does not speak %s", c.addr, frame.Protocol).
			Advise("update it, or connect without a proxy between")
	}
	return rw, bufio.NewReaderSize(rw, 32<<10), nil
}

func sendInput(w *frame.Writer, r io.Reader) {
	if r != nil {
		_, _ = io.CopyBuffer(w.Stream(frame.Stdin), onlyReader{r}, make([]byte, 32<<10)) // a broken connection is seen by receiveFrames
	}
	_ = w.Write(frame.EOF, nil)
}

type onlyReader struct{ io.Reader }

func sendSizes(w *frame.Writer, sizes <-chan api.Window, done <-chan struct{}) {
	for {
		select {
		case s, ok := <-sizes:
			if !ok {
				return
			}
			_ = w.Write(frame.Window, frame.PutWindow(s.Rows, s.Cols))
		case <-done:
			return
		}
	}
}

func receiveFrames(r io.Reader, s ExecStreams) (job.ExitCode, error) {
	var buf []byte
	for {
		t, payload, grown, err := frame.Read(r, buf)
		if err != nil {
			return job.ExitCode{}, fault.New(fault.Unavailable, "the connection broke before the command ended: %w", err)
		}
		buf = grown
		switch t {
		case frame.Stdout:
			err = writeAll(s.Stdout, payload)
		case frame.Stderr:
			err = writeAll(s.Stderr, payload)
		case frame.Exit:
			var code job.ExitCode
			err = json.Unmarshal(payload, &code)
			return code, err
		case frame.Error:
			e := &api.Error{}
			if json.Unmarshal(payload, e) != nil {
				e.Detail = string(payload)
			}
			return job.ExitCode{}, e.Fault()
		}
		if err != nil {
			return job.ExitCode{}, err
		}
	}
}

func writeAll(w io.Writer, b []byte) error {
	if w == nil {
		return nil
	}
	_, err := w.Write(b)
	return err
}
