package podagent

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/coxswain-sched/coxswain/agent/exec"
	"github.com/coxswain-sched/coxswain/agent/step/wire"
	"github.com/coxswain-sched/coxswain/api/frame"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// A command beside the tasks goes over the two streams of `cox-pod exec`, in the frames of
// package frame and three more. So the command is a child of the job's supervisor, in the
// job's environment; its exit code comes as it is; and its end is certain when who asked for
// it has gone, since that is the end of the stream, or its silence.
const (
	frameAsk  frame.Type = 32 // driver, first: JSON of asked
	framePing frame.Type = 33 // driver, again and again: it is there
	frameTook frame.Type = 34 // member: one frame of input was taken
)

const (
	pingEach = 20 * time.Second
	window   = 16       // frames of input that may be on their way
	chunk    = 32 << 10 // bytes in one of them
)

// execRequest is the command.
type execRequest struct {
	Command []string      `json:"command"`
	Env     []string      `json:"env,omitempty"`
	Step    *int          `json:"step,omitempty"`
	Rank    *int          `json:"rank,omitempty"`
	Stdin   bool          `json:"stdin,omitempty"`
	TTY     bool          `json:"tty,omitempty"`
	Window  engine.Window `json:"window"`
}

// Beside runs a command beside the tasks of its member, as the other end of in and out says
// (Converse): `cox-pod exec`. It returns once the command has ended, or out is broken.
func Beside(at Place, index string, in io.Reader, out io.Writer) error {
	plan, err := at.readPlan()
	if err != nil {
		return err
	}
	i, err := indexOf(index, len(plan.Members))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	most := 8 * at.Lost
	idle := time.AfterFunc(most, cancel)
	defer idle.Stop()
	_, text, _, err := frame.Read(in, nil)
	var a execRequest
	if err == nil {
		err = json.Unmarshal(text, &a)
	}
	if err != nil {
		return fault.New(fault.Invalid, "exec: what is to be run: %w", err)
	}
	w := frame.NewWriter(out)
	r := engine.ExecRequest{Command: a.Command, TTY: a.TTY, Window: a.Window, Stdout: w.Stream(frame.Stdout), Stderr: w.Stream(frame.Stderr)}
	input := newInput(w, &r, a.Stdin)
	go func() {
		defer cancel()
		input.readFrames(in, func() { idle.Reset(most) })
	}()
	x := &wire.Exec{Socket: slotOf(at.rootDir(), i).StepSocket(), Job: plan.Job.ID, Attempt: max(plan.Ref.Attempt, 1), Args: a.Command, Env: a.Env, Step: a.Step, Rank: a.Rank}
	code, err := exec.Run(ctx, x, r, nil)
	if err != nil {
		return w.Write(frame.Error, encodePayload(answer{Kind: fault.KindOf(err), Error: err.Error()}))
	}
	return w.Write(frame.Exit, encodePayload(code))
}

// encodePayload is plain data as a frame has it.
func encodePayload(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic("exec: " + err.Error())
	}
	return text
}

// input is what goes to a command.
type input struct {
	queue chan []byte
	sizes chan engine.Window
}

// newInput is the input of r, which it fills in. What the command has taken it says to w.
func newInput(w *frame.Writer, r *engine.ExecRequest, has bool) *input {
	n := &input{queue: make(chan []byte, window), sizes: make(chan engine.Window, 1)}
	r.Resize = n.sizes
	if !has {
		return n
	}
	from, to := io.Pipe()
	r.Stdin = from
	go func() { // ends with the process
		for b := range n.queue {
			if _, err := to.Write(b); err != nil {
				continue
			}
			_ = w.Write(frameTook, nil)
		}
		_ = to.Close()
	}()
	return n
}

// readFrames takes frames until their end, or one that should not be. heard is called for each.
func (n *input) readFrames(in io.Reader, heard func()) {
	open := true
	for {
		t, b, _, err := frame.Read(in, nil)
		if err != nil {
			return
		}
		heard()
		switch {
		case t == frame.Stdin && open && len(n.queue) < window:
			n.queue <- b
		case t == frame.EOF && open:
			open = false
			close(n.queue)
		case t == frame.Window:
			if rows, cols, ok := frame.GetWindow(b); ok {
				select {
				case <-n.sizes: // only the latest matters
				default:
				}
				n.sizes <- engine.Window{Rows: rows, Cols: cols}
			}
		case t != framePing:
			return
		}
	}
}

// Converse is the driver's end: it has run start `cox-pod exec` in the member's pod with two
// streams, and carries the command's through these. run returns when the process has ended, or
// its context; an end of the streams before the command's is its error.
func Converse(ctx context.Context, r engine.ExecRequest, run func(ctx context.Context, in io.Reader, out io.Writer) error) (job.ExitCode, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	theirIn, in := io.Pipe()
	out, theirOut := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, theirIn, theirOut)
		_ = in.Close() // who still reads finds its end
		_ = theirOut.Close()
		ended <- err
	}()
	c := &execClient{w: frame.NewWriter(in), r: r, took: make(chan struct{}, window), ctx: ctx}
	go c.sendInput()
	code, err := c.receiveOutput(out)
	_, _ = io.Copy(io.Discard, out)
	broken := <-ended
	switch {
	case err == nil:
		return code, nil
	case ctx.Err() != nil:
		return code, ctx.Err()
	case err == errCut && broken != nil:
		return code, broken
	case err == errCut:
		return code, fault.New(fault.Unavailable, "the command's streams ended before it did: its pod has ended, or the way to it")
	}
	return code, err
}

// errCut says that the streams ended.
var errCut = fault.New(fault.Unavailable, "cut")

// execClient is the driver's end of a command's streams.
type execClient struct {
	w    *frame.Writer
	r    engine.ExecRequest
	took chan struct{}
	ctx  context.Context //nolint:containedctx // of the one call
}

// sendInput asks for the command, and then carries on input, sizes, and that there is somebody.
func (c *execClient) sendInput() {
	r := &c.r
	if c.w.Write(frameAsk, encodePayload(execRequest{r.Command, r.Env, r.Step, r.Rank, r.Stdin != nil, r.TTY, r.Window})) != nil {
		return
	}
	if r.Stdin != nil {
		go c.feedInput() // may outlast the command, in a Read
	}
	ping := time.NewTicker(pingEach)
	defer ping.Stop()
	sizes := r.Resize
	for {
		var err error
		select {
		case <-c.ctx.Done():
			return
		case <-ping.C:
			err = c.w.Write(framePing, nil)
		case s, ok := <-sizes:
			if !ok {
				sizes = nil
				continue
			}
			err = c.w.Write(frame.Window, frame.PutWindow(s.Rows, s.Cols))
		}
		if err != nil {
			return
		}
	}
}

// feedInput carries on input, as much as is taken.
func (c *execClient) feedInput() {
	buf := make([]byte, chunk)
	for sent := 0; ; {
		n, err := c.r.Stdin.Read(buf)
		if n > 0 {
			if sent == window {
				select {
				case <-c.took:
					sent--
				case <-c.ctx.Done():
					return
				}
			}
			if c.w.Write(frame.Stdin, buf[:n]) != nil {
				return
			}
			sent++
		}
		if err != nil {
			_ = c.w.Write(frame.EOF, nil)
			return
		}
	}
}

// receiveOutput carries on output until the command's end.
func (c *execClient) receiveOutput(out io.Reader) (code job.ExitCode, err error) {
	var buf []byte
	for {
		t, b, grown, err := frame.Read(out, buf)
		if err != nil {
			return code, errCut
		}
		buf = grown
		switch t {
		case frame.Stdout:
			writeOrDrop(&c.r.Stdout, b)
		case frame.Stderr:
			writeOrDrop(&c.r.Stderr, b)
		case frameTook:
			select {
			case c.took <- struct{}{}:
			default:
			}
		case frame.Exit:
			err := json.Unmarshal(b, &code)
			return code, err
		case frame.Error:
			var a answer
			if err := json.Unmarshal(b, &a); err != nil {
				return code, err
			}
			return code, fault.New(a.Kind, "%s", a.Error)
		default:
			return code, fmt.Errorf("exec: a frame of type %d", t)
		}
	}
}

// writeOrDrop writes to where output goes; once nobody takes it, it is dropped.
func writeOrDrop(to *io.Writer, b []byte) {
	if *to == nil {
		return
	}
	if _, err := (*to).Write(b); err != nil {
		*to = nil
	}
}

// Probe runs a command as the tasks of its member are run: `cox-pod probe`. nil: it passed.
func Probe(at Place, index string, command []string) error {
	plan, err := at.readPlan()
	if err != nil {
		return err
	}
	i, err := indexOf(index, len(plan.Members))
	if err != nil {
		return err
	}
	var rank *int
	if plan.Job.Spec.Program.Kind == job.Direct {
		rank = new(int)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	x := &wire.Exec{
		Socket: slotOf(at.rootDir(), i).StepSocket(), Job: plan.Job.ID, Attempt: max(plan.Ref.Attempt, 1), Args: command, Rank: rank,
		Files: [3]*os.File{null, null, null},
	}
	code, why, err := x.Run(context.Background(), func() {})
	switch {
	case err != nil:
		return fault.New(fault.Conflict, "%s: %w", command[0], err)
	case why != "":
		return fault.New(fault.Conflict, "%s: %s", command[0], why)
	case !code.OK():
		return fault.New(fault.Conflict, "%s ended with exit code %s", command[0], code)
	}
	return nil
}
