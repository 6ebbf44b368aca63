package localrun

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// queuePatience is how long a line of a job of a server waits for its writer to become known: the
// server is asked which ranks there are.
const queuePatience = 800 * time.Millisecond

// ranksFollowed is how many ranks of a job are told apart: each is a connection.
const ranksFollowed = 64

// logStream reads an output of a server's job while it is written.
type logStream struct {
	mu    sync.Mutex
	lines []string
	last  string // line with text
	err   error
	ended chan struct{} // nothing more comes
}

// openOutput begins to read an output of a job: one of its files, or the log of a rank.
func (s *queueSession) openOutput(ctx context.Context, j *followed, path string) *tail {
	o := client.LogOptions{Follow: true}
	if i := slices.Index(j.view.Report.Files, path); i > 0 {
		o.Stream = "stderr"
	}
	var step, rank int
	if _, err := fmt.Sscanf(path, "rank:%d.%d", &step, &rank); err == nil {
		if len(j.ranks) >= ranksFollowed {
			return &tail{path: path, stream: closedStream()}
		}
		o.Step, o.Rank = &step, &rank
	}
	l := &logStream{ended: make(chan struct{})}
	go l.follow(ctx, s.queue.Client, j.view.Job.ID, o)
	return &tail{path: path, stream: l}
}

// closedStream is an output that is not read.
func closedStream() *logStream {
	l := &logStream{ended: make(chan struct{})}
	close(l.ended)
	return l
}

// follow reads until the job has ended, over broken connections too.
func (l *logStream) follow(ctx context.Context, c *client.Client, id job.ID, o client.LogOptions) {
	defer close(l.ended)
	var taken int64
	for {
		err := l.readFrom(ctx, c, id, o, &taken)
		j, asked := c.Job(ctx, id.String())
		switch {
		case ctx.Err() != nil:
			return
		case asked == nil && endedState(j.State) && (err == nil || fault.KindOf(err) != fault.Unavailable):
			l.mu.Lock()
			l.err = err
			l.mu.Unlock()
			return
		}
		select {
		case <-time.After(askAgain):
		case <-ctx.Done():
			return
		}
	}
}

func endedState(name string) bool {
	var s job.State
	return s.UnmarshalText([]byte(name)) == nil && s.Final()
}

// readFrom reads what comes after the bytes that were taken before.
func (l *logStream) readFrom(ctx context.Context, c *client.Client, id job.ID, o client.LogOptions, taken *int64) error {
	body, err := c.Logs(ctx, id.String(), o)
	if err != nil {
		return err
	}
	defer body.Close()
	if _, err := io.CopyN(io.Discard, body, *taken); err != nil {
		return nil //nolint:nilerr // it is shorter now: the job began anew, or nothing more comes
	}
	in := bufio.NewReaderSize(body, maxLine)
	for {
		line, err := in.ReadSlice('\n') // or as much of a line as is shown at once
		*taken += int64(len(line))
		if len(line) > 0 {
			l.mu.Lock()
			text := strings.TrimSuffix(string(line), "\n")
			l.lines = append(l.lines, text)
			if strings.TrimSpace(text) != "" {
				l.last = strings.TrimSpace(text)
			}
			l.mu.Unlock()
		}
		if err != nil && err != bufio.ErrBufferFull { //nolint:errorlint // as the package says
			if err == io.EOF {
				return nil
			}
			return err
		}
	}
}

// lastWords is the last line with text of a rank's log.
func (j *followed) lastWords(log string) string {
	t := j.ranks[log]
	if t == nil || t.stream == nil {
		return lastLine(log)
	}
	t.stream.mu.Lock()
	defer t.stream.mu.Unlock()
	return t.stream.last
}

// lastWait bounds how long the end of a job's output is waited for once the job has ended.
const lastWait = 10 * time.Second

// readLines returns the lines that came since the last call; with last set, all that there will be.
func (l *logStream) readLines(last bool) ([]string, error) {
	if last {
		select {
		case <-l.ended:
		case <-time.After(lastWait):
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	return lines, l.err
}
