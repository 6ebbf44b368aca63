package fastclient

import (
	"encoding/base64"
	"encoding/json"
	"io"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/frame"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Exec runs a command on the first node of a running job, in the environment of its batch
// script, and returns how it ended. in nil is empty; a read from it that blocks may outlive
// the call. The connection is used up.
func (c *Client) Exec(name string, command []string, in io.Reader, out, errs io.Writer) (job.ExitCode, error) {
	var o Object
	o.Texts("command", command)
	return c.execRequest(name, &o, in, nil, out, errs)
}

// ExecTerminal is Exec with a terminal, whose first size is that of w and whose kind is term; later
// sizes come from sizes until it is closed.
func (c *Client) ExecTerminal(name string, command []string, term string, w api.Window, sizes <-chan api.Window, in io.Reader, out io.Writer) (job.ExitCode, error) {
	var o, size Object
	o.Texts("command", command)
	o.True("tty", true)
	size.Int("rows", int64(w.Rows))
	size.Int("cols", int64(w.Cols))
	o.Raw("window", size.End())
	if term != "" {
		o.Texts("env", []string{"TERM=" + term})
	}
	return c.execRequest(name, &o, in, sizes, out, out)
}

func (c *Client) execRequest(name string, o *Object, in io.Reader, sizes <-chan api.Window, out, errs io.Writer) (job.ExitCode, error) {
	defer c.Close()
	c.upgrade = "\r\nConnection: Upgrade\r\nUpgrade: " + frame.Protocol + "\r\n" + frame.Header + ": " + base64.StdEncoding.EncodeToString(o.End())
	r, err := c.Do("POST", "/v1/jobs/"+Segment(name)+"/exec", "", nil)
	c.upgrade = ""
	switch {
	case err != nil:
		return job.ExitCode{}, err
	case r.Status >= 400:
		return job.ExitCode{}, r.readProblem()
	case r.Status != statusSwitching:
		return job.ExitCode{}, fault.New(fault.Unsupported, "the server at %s does not speak %s", c.addr, frame.Protocol).Advise("update it, or connect without a proxy between")
	}
	if s, ok := c.conn.(socket); ok { // what is not a bare descriptor knows its own writers
		c.conn = &writerConn{socket: s}
	}
	w := frame.NewWriter(c.conn)
	if sizes != nil {
		go func() {
			for size := range sizes {
				_ = w.Write(frame.Window, frame.PutWindow(size.Rows, size.Cols))
			}
		}()
	}
	go func() {
		if in != nil {
			_, _ = io.Copy(w.Stream(frame.Stdin), in) // a broken connection is seen below
		}
		_ = w.Write(frame.EOF, nil)
	}()
	return receiveFrames(c.buf, out, errs)
}

// statusSwitching is the HTTP status of an upgraded connection.
const statusSwitching = 101

// receiveFrames copies what a command prints until its end.
func receiveFrames(r io.Reader, out, errs io.Writer) (code job.ExitCode, err error) {
	var buf []byte
	for {
		t, payload, grown, err := frame.Read(r, buf)
		if err != nil {
			return code, fault.New(fault.Unavailable, "the connection broke before the command ended: %w", err)
		}
		buf = grown
		switch t {
		case frame.Stdout:
			_, err = out.Write(payload)
		case frame.Stderr:
			_, err = errs.Write(payload)
		case frame.Exit:
			return code, json.Unmarshal(payload, &code)
		case frame.Error:
			e := &api.Error{}
			if json.Unmarshal(payload, e) != nil {
				e.Detail = string(payload)
			}
			return code, e.Fault()
		}
		if err != nil {
			return code, err
		}
	}
}
